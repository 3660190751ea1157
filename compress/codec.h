// Turns one boundary tensor into bytes and back. A codec is stateless and thread-safe: equal
// values and keys give equal bytes. What must be remembered between messages lives outside.
//
// decode(bytes) is bit-specified: the same on every SIMD target, thread count and backend.
// Layouts are in docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/kernels.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

class Axes;
class SupportMap;

// What a message may use besides its tensor.
struct MessageContext {
  // Key of the message's counter-based random numbers. Encode only: what a decoder needs of it is
  // in the payload.
  uint64_t random_key = 0;
  // The received activation's non-zeros; set iff spec().needs_support(). Same elements as x.
  const SupportMap* support = nullptr;
  // What WarmStart gave for the message before; null or of another shape: a fresh start. Of any
  // number of samples: those that it lacks start afresh. Encode only.
  const Tensor* warm_start = nullptr;
  // rotation principal: what NewAxes gave of the last message that had axes; null: none did.
  // Outlive the call.
  const Axes* axes = nullptr;
  // rotation principal, encode only: the message is sent in axes of its own, which go with it.
  bool takes_axes = true;
};

class Codec {
 public:
  virtual ~Codec() = default;

  const CodecSpec& spec() const { return spec_; }

  // No payload of `values` of this shape and type is longer. Receive limits rest on it.
  virtual size_t MaxPayloadBytes(const Shape& shape, DType dtype) const = 0;

  // Writes the payload of `x` ([batch, ...], fp32 or bf16, which widens exactly) to `payload`
  // (host memory of at least MaxPayloadBytes) and returns its length. OutOfRange if `x` holds NaN
  // or infinity and the codec cannot carry them; `payload` is then unspecified.
  virtual absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                        absl::Span<uint8_t> payload) const = 0;

  // Overwrites every element of `x`; shape and type come from the boundary, never from the
  // payload. InvalidArgument if `payload` is malformed or is not for that tensor; `x` is then
  // unspecified.
  virtual absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                              Tensor* x) const = 0;

  // low_rank: the factor that the next message's iteration may start from, from the payload of
  // this one ([columns, rank] or [samples, columns, rank], fp32). Empty for other codecs.
  virtual absl::StatusOr<Tensor> WarmStart(absl::Span<const uint8_t> /*payload*/,
                                           const Shape& /*shape*/) const {
    return Tensor();
  }

  // rotation principal: the axes that go with this payload, from which those behind it are decoded;
  // null if none do. Null for other codecs. `device`: of the tensors. InvalidArgument if they are
  // malformed.
  virtual absl::StatusOr<std::shared_ptr<const Axes>> NewAxes(absl::Span<const uint8_t> /*payload*/,
                                                              const Shape& /*shape*/,
                                                              Device* /*device*/) const {
    return std::shared_ptr<const Axes>();
  }

 protected:
  explicit Codec(const CodecSpec& spec) : spec_(spec) {}

 private:
  CodecSpec spec_;
};

}  // namespace thinwire
