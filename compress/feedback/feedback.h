// Error compensation around any codec: what is added to a message so that what earlier ones lost is
// paid back (FeedbackSpec has the recursions, docs/compression.md all of it). One sender and one
// receiver per direction of a cut; under ef21 both keep state, changed only by what was decoded,
// and equal bit for bit.
//
// State is kept by row: each sample of a message has one, and the caller says which (StateKey).
// Arithmetic on state is fp32 whatever the tensors' type.
//
// On a device that is not the host the payload is there when Encode returns; tensors and state may
// still be under way, and go to another thread after Finish (tensor/device.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/codec.h"
#include "compress/codecs/axes.h"
#include "compress/feedback/message_tensors.h"
#include "compress/feedback/options.h"
#include "compress/feedback/plan.h"
#include "compress/feedback/spec.h"
#include "compress/feedback/split_codec.h"
#include "compress/feedback/state_rows.h"
#include "compress/feedback/state_store.h"
#include "tensor/tensor.h"

namespace thinwire {

// One thread at a time.
class FeedbackSender {
 public:
  // InvalidArgument if the specification is out of range (CheckFeedback).
  static absl::StatusOr<std::unique_ptr<FeedbackSender>> New(const FeedbackOptions& options);

  struct Outgoing {
    const Tensor* x = nullptr;        // [batch, ...], of the compute type
    absl::Span<const uint64_t> rows;  // of each sample, all different; may be empty under kNone
    bool compress = true;             // false: the message goes exact
    bool frozen = false;     // evaluation: plain C(x) or x, no state is read or written; low_rank
                             // starts from the factor of training
    uint64_t step = 0;       // says when digests are taken
    MessageContext context;  // warm_start, axes and takes_axes are filled in
    bool want_received = false;
  };
  // Tensors share the sender's memory and are valid until its next message.
  struct Encoded {
    size_t bytes = 0;
    bool exact = false;  // the payload is that of codec none, whatever codec was given
    bool first_visit = false;
    std::optional<uint64_t> state_digest;
    Tensor message;   // what the codec got: x itself, or fp32, or if exact of the compute type
    Tensor decoded;   // what the codec gives back; only if want_received where no state needs it
    Tensor received;  // what the receiver will use, of the compute type; only if want_received
  };
  // Writes the payload of one message to host memory of at least FeedbackMaxPayloadBytes.
  // InvalidArgument if the codec does not go with the feedback, OutOfRange if it refuses the values
  // (NaN; the same message may be sent without `compress`), ResourceExhausted naming limit, bytes
  // wanted and rows, with and without `compress`: state is then as before. Errors of the state's
  // memory or file leave it unspecified.
  absl::StatusOr<Encoded> Encode(const Codec& codec, const Outgoing& outgoing,
                                 absl::Span<uint8_t> payload);

  // ||e|| / ||x|| after the message just sent; under ef21 ||x - A|| / ||x|| with the A before it. 0
  // under kNone and after exact messages. `x` as it was sent.
  absl::StatusOr<double> RelativeResidual(const Tensor& x) const;

  // For checkpoints: null under kNone.
  StateStore* state() { return state_.get(); }
  // low_rank's factor after the last message it coded, under every kind; with per_sample also those
  // of samples that only longer messages before it had. Empty for other codecs.
  const Tensor& warm_start() const { return warm_start_; }
  void set_warm_start(Tensor factor) { warm_start_ = std::move(factor); }
  // Rotation principal, under every kind: the axes of the last message that had some, and how many
  // messages have been sent in them. Null for other codecs.
  const KeptAxes& axes() const { return axes_; }
  // `bytes` of an Axes. InvalidArgument if they are malformed.
  absl::Status SetAxes(absl::Span<const uint8_t> bytes, uint64_t messages);

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
  // Encodes with what is kept for low_rank or rotation principal, and keeps what the next message
  // needs unless frozen.
  absl::StatusOr<size_t> EncodeWarm(const Codec& codec, const Tensor& x, const Outgoing& outgoing,
                                    absl::Span<uint8_t> payload);
  // What the receiver makes of the payload that EncodeWarm just wrote.
  absl::Status DecodeOwn(const Codec& codec, absl::Span<const uint8_t> payload,
                         const Outgoing& outgoing, Tensor* decoded) const;
  // x + sign * state, of `dtype`.
  absl::StatusOr<Tensor> AddState(const Tensor& x, float sign, DType dtype);
  absl::Status KeepErrors(const Tensor& message, const Tensor& sent);

  const FeedbackOptions options_;
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<StateRows> rows_;  // null without state
  std::unique_ptr<Codec> exact_;
  SplitCodec split_;
  Tensor warm_start_;
  KeptAxes axes_;
  ReusedTensor message_memory_, decoded_memory_, received_memory_;
  Tensor last_message_, last_decoded_;  // empty after a message without a residual
};

// One thread at a time.
class FeedbackReceiver {
 public:
  static absl::StatusOr<std::unique_ptr<FeedbackReceiver>> New(const FeedbackOptions& options);

  struct Incoming {
    absl::Span<const uint8_t> payload;
    Shape shape;                      // [batch, ...]
    absl::Span<const uint64_t> rows;  // as this end knows them; may be empty except under ef21
    bool exact = false;               // these three as the sender says
    bool first_visit = false;
    std::optional<uint64_t> state_digest;
    bool frozen = false;  // as for the sender
    uint64_t step = 0;
    MessageContext context;
  };
  // What the receiver uses, of the compute type. InvalidArgument if the payload is malformed,
  // FailedPrecondition starting with "DESYNC" if the message's first_visit is not what this end's
  // rows say: state is then as before. FailedPrecondition "state differs" if the digest is another,
  // naming step and row.
  absl::StatusOr<Tensor> Decode(const Codec& codec, const Incoming& incoming);

  // For checkpoints: null unless ef21.
  StateStore* state() { return state_.get(); }
  // As the sender's; messages are not counted.
  const KeptAxes& axes() const { return axes_; }
  absl::Status SetAxes(absl::Span<const uint8_t> bytes, uint64_t messages);

 private:
  explicit FeedbackReceiver(const FeedbackOptions& options)
      : options_(options), split_(options.kernels) {}

  absl::Status CheckFlags(const Incoming& incoming, bool tracks) const;
  absl::Status CheckDigest(const Incoming& incoming);
  absl::StatusOr<Tensor> DecodePlain(const Codec& codec, const Incoming& incoming);
  // In the axes that are kept or come with it; keeps those unless frozen.
  absl::Status DecodeWarm(const Codec& codec, const Incoming& incoming, Tensor* x);
  absl::StatusOr<Tensor> DecodeTracked(const Codec& codec, const Incoming& incoming);

  const FeedbackOptions options_;
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<StateRows> rows_;  // null without state
  std::unique_ptr<Codec> exact_;
  SplitCodec split_;
  KeptAxes axes_;
  ReusedTensor decoded_memory_;
};

}  // namespace thinwire
