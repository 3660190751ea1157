// Codec of ef_mixed_b: a message's x and its e, each coded with half of the budget.
//
// Layout: u64 length of the first payload, the payload of x, the payload of e.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/codec.h"
#include "compress/feedback/message_tensors.h"
#include "compress/feedback/plan.h"

namespace thinwire {

// Codec of a pair x, e. One thread at a time.
class SplitCodec {
 public:
  explicit SplitCodec(CodecKernels* kernels) : kernels_(kernels) {}

  // Writes the payload of x and e and returns its length, at most FeedbackMaxPayloadBytes. `codec`
  // has the whole budget.
  absl::StatusOr<size_t> Encode(const CodecSpec& codec, const Tensor& x, const Tensor& e,
                                const MessageContext& context, absl::Span<uint8_t> payload);
  // Sets sum = D(C'(x)) + D(C'(e)), added in fp32.
  absl::Status Decode(const CodecSpec& codec, absl::Span<const uint8_t> payload,
                      const MessageContext& context, Tensor* sum);

 private:
  // Makes the codecs of both halves of `codec`'s budget, unless they are at hand.
  absl::Status UseHalvesOf(const CodecSpec& codec, const Shape& shape);

  CodecKernels* const kernels_;
  std::unique_ptr<Codec> x_codec_, e_codec_;  // of the halves of the last message
  ReusedTensor x_memory_, e_memory_;
};

}  // namespace thinwire
