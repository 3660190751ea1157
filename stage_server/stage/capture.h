// Copies of the tensors that a stage sends in chosen steps, made before any codec.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// Tensors that are captured.
struct CaptureSpec {
  std::set<uint64_t> steps;  // training steps; empty: nothing is captured
  std::set<uint32_t> cuts;   // indices in model order
  bool activations = false, gradients = false;
};

// Not thread-safe.
class Capture {
 public:
  explicit Capture(const CaptureSpec& spec) : spec_(spec) {}

  // Copies `x`, which is about to be sent at the cut named `cut`, to host memory if `spec` wants
  // it. `key` must be complete.
  absl::Status Offer(const MessageKey& key, const std::string& cut, const Tensor& x);

  // Writes what was kept of `step` to `sink` as a safetensors file, in pieces of at most
  // `piece_bytes`, and drops it. Tensors come in order of their names:
  // CUT/activation/stepN/microbatchM or CUT/gradient/... They are fp32 or bf16 [samples, height,
  // width, channels] or [samples, features].
  absl::Status Take(uint64_t step, size_t piece_bytes,
                    const std::function<absl::Status(std::string_view)>& sink);

 private:
  struct Kept {
    std::string dtype;  // the format's name
    std::vector<int64_t> shape;
    std::string bytes;
  };

  const CaptureSpec spec_;
  // By step, and then by name, so that a file is the same in whatever order they were offered.
  std::map<uint64_t, std::multimap<std::string, Kept>> kept_;
};

}  // namespace thinwire
