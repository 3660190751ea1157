// Codec: turns one boundary tensor into bytes and back. A codec is stateless and thread-safe: equal
// values and keys give equal bytes. What must be remembered between messages is kept by its caller.
//
// The result of Decode is specified bit for bit: it is the same on every SIMD target, thread count
// and backend. Payload layouts are in docs/compression.md.
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

// Inputs of a message besides its tensor.
struct MessageContext {
  // Key of the message's counter-based random numbers. For Encode only: the payload holds what a
  // decoder needs of it.
  uint64_t random_key = 0;
  // Non-zeros of the received activation; set iff spec().needs_support(). As many elements as x.
  const SupportMap* support = nullptr;
  // Factor that WarmStart returned for the message before. If it is null or has another shape, the
  // iteration starts afresh. It may have any number of samples; those that it lacks start afresh.
  // For Encode only.
  const Tensor* warm_start = nullptr;
  // For rotation principal: the axes that NewAxes returned for the last message that carried some;
  // null if none has yet. They outlive the call.
  const Axes* axes = nullptr;
  // For rotation principal, Encode only: true if the message is sent in new axes of its own, which
  // travel with it.
  bool takes_axes = true;
};

class Codec {
 public:
  virtual ~Codec() = default;

  const CodecSpec& spec() const { return spec_; }

  // Returns an upper bound of the payload's bytes for any tensor of this shape and type. Receive
  // limits rest on it.
  virtual size_t MaxPayloadBytes(const Shape& shape, DType dtype) const = 0;

  // Writes the payload of `x` ([batch, ...], fp32 or bf16, which widens exactly) to `payload`
  // (host memory of at least MaxPayloadBytes) and returns its length. OutOfRange if `x` holds NaN
  // or infinity and the codec cannot carry them; `payload` is then unspecified.
  virtual absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                        absl::Span<uint8_t> payload) const = 0;

  // Decodes `payload` and overwrites every element of `x`. Shape and type come from the boundary,
  // never from the payload. InvalidArgument if `payload` is malformed or is not for that tensor;
  // `x` is then unspecified.
  virtual absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                              Tensor* x) const = 0;

  // For low_rank: returns the factor in this payload, from which the next message's iteration may
  // start ([columns, rank] or [samples, columns, rank], fp32). Empty for other codecs.
  virtual absl::StatusOr<Tensor> WarmStart(absl::Span<const uint8_t> /*payload*/,
                                           const Shape& /*shape*/) const {
    return Tensor();
  }

  // For rotation principal: returns the axes that travel with this payload, by which later messages
  // are decoded; null if it carries none. Null for other codecs. `device` is that of the tensors.
  // InvalidArgument if the axes are malformed.
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
