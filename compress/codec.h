// Codec: turns one boundary tensor into bytes and back. A codec is stateless and thread-safe: equal
// values and keys give equal bytes. What must be remembered between messages is kept by its caller.
//
// The result of Decode is specified bit for bit: it is the same on every SIMD target, thread count
// and backend. Payload layouts are in docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/safetensors.h"
#include "compress/kernels.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

class SupportMap;

// State that messages leave to the next one of their direction, for instance a factor or axes.
// Immutable; only the codec that left it understands it.
//
// The caller keeps one at each end of a direction, or of a piece of a parameter, null at first. It
// hands it in with every message (MessageContext::carry) and keeps what comes out (next_carry),
// unless the message failed. Both ends code the same messages in the same order. Nothing else is
// kept between messages but the state of feedback.
class Carry {
 public:
  virtual ~Carry() = default;

  // Returns views of tensors in host memory, from which Codec::ReadCarry makes an equal one.
  // Checkpoints have them under these names.
  virtual std::vector<StoredTensor> Parts() const = 0;
};

// Inputs of a message besides its tensor.
struct MessageContext {
  // Key of the message's counter-based random numbers. For Encode only: the payload holds what a
  // decoder needs of it.
  uint64_t random_key = 0;
  // Non-zeros of the received activation; set iff spec().needs_support(). As many elements as x.
  const SupportMap* support = nullptr;
  // State that this end keeps of earlier messages; null if there is none. A codec that it does not
  // fit may disregard it. It outlives the call.
  const Carry* carry = nullptr;
  // Out: what this end keeps from now on. It begins as what `carry` points to, and stays so if the
  // message changes nothing. Null if neither end keeps anything of the message (evaluation).
  std::shared_ptr<const Carry>* next_carry = nullptr;
  // True if the payload is in memory of the tensor's device, aligned to 16, which is not the host.
  // Only for codecs of which CodesOnDevice says that they take it there (codecs/new_codec.h).
  bool payload_is_on_device = false;
  // For Encode only: true if the first row of each sample is position 0 of its sequence, as it is
  // unless the message has later positions.
  bool begins_sequences = true;
  // Rows of the tensor with which documents begin that are packed into samples, ascending: numbers
  // of runs along the last axis. Both ends have the same. They outlive the call.
  absl::Span<const uint32_t> document_rows = {};
};

class Codec {
 public:
  virtual ~Codec() = default;

  const CodecSpec& spec() const { return spec_; }

  // Returns an upper bound of the payload's bytes for any tensor of this shape and type, without
  // documents in it (MaxDocumentBytes in codecs/division.h). Receive limits rest on it.
  virtual size_t MaxPayloadBytes(const Shape& shape, DType dtype) const = 0;

  // Writes the payload of `x` ([batch, ...], fp32 or bf16, which widens exactly) to `payload`
  // (at least as many bytes as these bounds, in host memory unless `context` says so) and returns
  // its length. OutOfRange if `x` holds NaN or infinity and the codec cannot carry them; `payload`
  // is then unspecified.
  virtual absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                        absl::Span<uint8_t> payload) const = 0;

  // Decodes `payload` and overwrites every element of `x`. Shape and type come from the boundary,
  // never from the payload. InvalidArgument if `payload` is malformed or is not for that tensor;
  // `x` is then unspecified.
  virtual absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& context,
                              Tensor* x) const = 0;

  // Makes a carry from Carry::Parts, of which there is at least one, in any order. `sample` is the
  // shape of a message of one sample, `device` that of the tensors. InvalidArgument names the part
  // that is missing, malformed, or none that this codec leaves.
  virtual absl::StatusOr<std::shared_ptr<const Carry>> ReadCarry(
      absl::Span<const StoredTensor> parts, const Shape& /*sample*/, Device* /*device*/) const {
    return RefuseParts(parts);
  }

 protected:
  explicit Codec(const CodecSpec& spec) : spec_(spec) {}

  // Returns the error for parts that are not this codec's.
  absl::Status RefuseParts(absl::Span<const StoredTensor> parts) const;

 private:
  CodecSpec spec_;
};

}  // namespace thinwire
