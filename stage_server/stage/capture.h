// Copies of what a stage was about to send: the raw tensors of chosen steps, before any codec.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

struct CaptureSpec {
  std::set<uint64_t> steps;  // of training; empty: nothing is captured
  std::set<uint32_t> cuts;   // indices in model order
  bool activations = false, gradients = false;
};

// One thread at a time.
class Capture {
 public:
  explicit Capture(const CaptureSpec& spec) : spec_(spec) {}

  // Copies `x`, which is about to be sent at the cut of that name, to host memory if `spec` wants
  // it. `key` is complete.
  absl::Status Offer(const MessageKey& key, const std::string& cut, const Tensor& x);

  // Hands what is kept of `step` to `sink` as a safetensors file in pieces of at most
  // `piece_bytes`, tensors in order of their names, and then keeps it no longer. Tensors are
  // called CUT/activation/stepN/microbatchM (or CUT/gradient/...), as fp32 or bf16
  // [samples, height, width, channels] or [samples, features].
  absl::Status Take(uint64_t step, size_t piece_bytes,
                    const std::function<absl::Status(std::string_view)>& sink);

 private:
  struct Kept {
    uint64_t step = 0;
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
    std::string bytes;
  };

  const CaptureSpec spec_;
  std::vector<Kept> kept_;
};

}  // namespace thinwire
