// Error compensation around any codec: adds to each message what earlier ones lost (FeedbackSpec
// has the recursions, docs/compression.md the full description). Each direction of a cut has one
// sender and one receiver. Under ef21 both keep state, which is changed only by decoded payloads
// and is equal bit for bit.
//
// State is kept by row: each sample of a message has one, and the caller says which (StateKey).
// Arithmetic on state is fp32 whatever the tensors' type.
//
// On a device that is not the host, the payload is complete when Encode returns. Tensors and state
// may still be under way; they go to another thread only after Finish (tensor/device.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/codec.h"
#include "compress/feedback/message_tensors.h"
#include "compress/feedback/options.h"
#include "compress/feedback/plan.h"
#include "compress/feedback/spec.h"
#include "compress/feedback/split_codec.h"
#include "compress/feedback/state_rows.h"
#include "compress/feedback/state_store.h"
#include "tensor/tensor.h"

namespace thinwire {

// Sending end of a direction. One thread at a time.
class FeedbackSender {
 public:
  // Makes a sender. InvalidArgument if the specification is out of range (CheckFeedback).
  static absl::StatusOr<std::unique_ptr<FeedbackSender>> New(const FeedbackOptions& options);

  // Message to send.
  struct Outgoing {
    const Tensor* x = nullptr;        // [batch, ...], of the compute type
    absl::Span<const uint64_t> rows;  // distinct row keys, one per sample; kNone: may be empty
    bool compress = true;             // false: the message is sent exactly
    // True for evaluation: sends plain C(x) or x, and neither reads nor writes state. The codec
    // uses what training messages left and changes nothing of it.
    bool frozen = false;
    bool calibrates = false;  // of a frozen message: keep what it leaves to the codec nevertheless
    uint64_t step = 0;        // decides whether a digest is due
    MessageContext context;   // carry and next_carry are filled in
    bool want_received = false;
  };
  // Message that was sent. The tensors use the sender's memory and are valid until its next
  // message.
  struct Encoded {
    size_t bytes = 0;
    bool exact = false;  // the payload is codec none's, whatever codec was given
    bool first_visit = false;
    std::optional<uint64_t> state_digest;
    Tensor message;   // what the codec got: x itself or fp32; of the compute type if exact
    Tensor decoded;   // the decoded payload; set if want_received or if state needs it
    Tensor received;  // what the receiver will use, of the compute type; only if want_received
  };
  // Writes the payload of one message to `payload`, host memory of at least
  // FeedbackMaxPayloadBytes. After these errors, state is as before. InvalidArgument: the codec
  // does not go with the feedback. OutOfRange: the codec refuses the values (NaN); the message may
  // then be sent without `compress`. ResourceExhausted, with and without `compress`: names limit,
  // bytes wanted and rows. Errors of the state's memory or file leave the state unspecified.
  absl::StatusOr<Encoded> Encode(const Codec& codec, const Outgoing& outgoing,
                                 absl::Span<uint8_t> payload);

  // Make a training message and keep its error without a codec in between, where the receiver uses
  // what only several messages together become. Under kNone and kEf.
  //
  // Returns x plus what earlier messages lost, fp32, in memory of this sender until its next
  // message. ResourceExhausted as from Encode.
  absl::StatusOr<Tensor> Compensate(const Tensor& x, std::vector<uint64_t> rows);
  // Sets the rows of state to `decay` times what `sent` lost of `message`, which Compensate made.
  absl::Status KeepErrors(const Tensor& message, const Tensor& sent);

  // Returns ||e|| / ||x|| after the message just sent; under ef21, ||x - A|| / ||x|| with the A
  // before it. 0 under kNone and after exact messages. `x` is the tensor as it was sent.
  absl::StatusOr<double> RelativeResidual(const Tensor& x) const;

  // Returns the state, for checkpoints; null under kNone.
  StateStore* state() { return state_.get(); }
  // Returns what the codec left to the next message, under every kind; null if nothing.
  const std::shared_ptr<const Carry>& carry() const { return carry_; }
  void set_carry(std::shared_ptr<const Carry> carry) { carry_ = std::move(carry); }

 private:
  explicit FeedbackSender(const FeedbackOptions& options)
      : options_(options), split_(options.kernels) {}

  absl::StatusOr<Encoded> EncodePlain(const Codec& codec, const Outgoing& outgoing,
                                      absl::Span<uint8_t> payload);
  absl::StatusOr<Encoded> EncodeExact(const Codec& carrier, const Outgoing& outgoing,
                                      absl::Span<uint8_t> payload);
  absl::StatusOr<Encoded> EncodeEf(const Codec& codec, const Outgoing& outgoing,
                                   absl::Span<uint8_t> payload);
  absl::StatusOr<Encoded> EncodeSplit(const Codec& codec, const Outgoing& outgoing,
                                      absl::Span<uint8_t> payload);
  absl::StatusOr<Encoded> EncodeEf21(const Codec& codec, const Outgoing& outgoing,
                                     absl::Span<uint8_t> payload);
  // Encodes with what earlier messages left, and keeps what this one leaves unless frozen.
  absl::StatusOr<size_t> EncodeNext(const Codec& codec, const Tensor& x, const Outgoing& outgoing,
                                    absl::Span<uint8_t> payload);
  // Sets encoded->decoded, of type `dtype`, to what the receiver decodes from the payload that
  // EncodeNext just wrote.
  absl::Status DecodeOwn(const Codec& codec, absl::Span<const uint8_t> payload,
                         const Outgoing& outgoing, DType dtype, Encoded* encoded);
  // Returns x + sign * state, of type `dtype`.
  absl::StatusOr<Tensor> AddState(const Tensor& x, float sign, DType dtype);

  const FeedbackOptions options_;
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<StateRows> rows_;  // null without state
  std::unique_ptr<Codec> exact_;
  SplitCodec split_;
  std::shared_ptr<const Carry> carry_;
  std::vector<uint64_t> compensated_;  // keys of the rows of Compensate's message
  ReusedTensor message_memory_, decoded_memory_, received_memory_;
  Tensor last_message_, last_decoded_;  // empty if the last message left no residual
};

// Receiving end of a direction. One thread at a time.
class FeedbackReceiver {
 public:
  static absl::StatusOr<std::unique_ptr<FeedbackReceiver>> New(const FeedbackOptions& options);

  // Message received.
  struct Incoming {
    absl::Span<const uint8_t> payload;
    Shape shape;                      // [batch, ...]
    absl::Span<const uint64_t> rows;  // keys as this end knows them; may be empty without ef21
    bool exact = false;               // this and the next two as the sender says
    bool first_visit = false;
    std::optional<uint64_t> state_digest;
    bool frozen = false;  // as for the sender, like the next one
    bool calibrates = false;
    uint64_t step = 0;
    MessageContext context;
  };
  // Returns the tensor that the receiver uses, of the compute type. InvalidArgument if the payload
  // is malformed; FailedPrecondition starting with "DESYNC" if first_visit disagrees with the rows
  // of this end. State is then as before. FailedPrecondition "state differs", naming step and row,
  // if the digest is another.
  absl::StatusOr<Tensor> Decode(const Codec& codec, const Incoming& incoming);

  // Returns the state, for checkpoints; null unless ef21.
  StateStore* state() { return state_.get(); }
  // As of the sender, but what decoding leaves.
  const std::shared_ptr<const Carry>& carry() const { return carry_; }
  void set_carry(std::shared_ptr<const Carry> carry) { carry_ = std::move(carry); }

 private:
  explicit FeedbackReceiver(const FeedbackOptions& options)
      : options_(options), split_(options.kernels) {}

  absl::Status CheckFlags(const Incoming& incoming, bool tracks) const;
  absl::Status CheckDigest(const Incoming& incoming);
  absl::StatusOr<Tensor> DecodePlain(const Codec& codec, const Incoming& incoming);
  // Decodes with what earlier messages left, and keeps what this one leaves unless frozen.
  absl::Status DecodeNext(const Codec& codec, const Incoming& incoming, Tensor* x);
  absl::StatusOr<Tensor> DecodeTracked(const Codec& codec, const Incoming& incoming);

  const FeedbackOptions options_;
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<StateRows> rows_;  // null without state
  std::unique_ptr<Codec> exact_;
  SplitCodec split_;
  std::shared_ptr<const Carry> carry_;
  ReusedTensor decoded_memory_;
};

}  // namespace thinwire
