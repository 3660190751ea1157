// What a sender makes of one tensor: the level in force, feedback, support, what goes exact, and
// how much was lost. Knows nothing of queues and links.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "compress/codec.h"
#include "compress/feedback/feedback.h"
#include "compress/level.h"
#include "compress/support.h"
#include "stage_server/boundary/boundary.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/support_maps.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// One thread at a time. Messages are encoded in the order in which they are sent.
class MessageEncoder {
 public:
  // `support` outlives the encoder; null where no codec needs it. Payloads of exact tensors on
  // `sends_from` stay in its memory; null: all are the host's.
  static absl::StatusOr<std::unique_ptr<MessageEncoder>> New(const BoundarySpec& spec,
                                                             SupportMaps* support,
                                                             const Device* sends_from);

  struct Outgoing {
    MessageKey key;
    uint64_t sample_digest = 0;
    bool compress = false;
    Tensor x;                               // nobody changes its memory any more
    std::shared_ptr<const EpochRows> rows;  // of the message's epoch; training with feedback only
    bool want_received = false;             // Encoded::feedback.received is filled in
    std::optional<double> sum_of_squares = {};  // of a message without a tensor
    SteadyTime submitted = {};                  // when it was, in a traced step
  };
  // The message, and what was at hand while it was made. Some tensors share the memory of the
  // encoder's state: an Encoded goes before the next message is encoded.
  struct Encoded {
    Message message;
    const Codec* codec = nullptr;         // the one in force, of the encoder
    MessageContext context;               // what it was given
    std::unique_ptr<SupportMap> support;  // that `context` names
    FeedbackSender::Encoded feedback;
  };
  // InvalidArgument when `x` holds NaN or infinity, is compressed and may not pass.
  absl::StatusOr<Encoded> Encode(const Outgoing& outgoing);

  // True if the error of this message is wanted: training, compressed, every n-th step.
  bool IsMeasured(const Outgoing& outgoing) const;
  // What was lost between `outgoing` and what the receiver makes of `encoded`. A level that follows
  // the error takes note of it.
  absl::StatusOr<MeasuredError> Measure(const Outgoing& outgoing, const Encoded& encoded);

  FeedbackSender& feedback() { return *feedback_; }
  LevelController& level() { return level_; }

 private:
  MessageEncoder(const BoundarySpec& spec, SupportMaps* support, const Device* sends_from,
                 std::unique_ptr<FeedbackSender> feedback);
  absl::StatusOr<Payload> RawBytes(const Tensor& x) const;
  absl::StatusOr<Encoded> Prepare(const Outgoing& outgoing);
  absl::StatusOr<FeedbackSender::Encoded> EncodeOrPass(const Codec& codec,
                                                       FeedbackSender::Outgoing outgoing,
                                                       absl::Span<uint8_t> payload);
  absl::Status EncodePayload(const Outgoing& outgoing, Encoded* encoded);

  const BoundarySpec spec_;
  SupportMaps* const support_;
  const Device* const sends_from_;
  const std::unique_ptr<FeedbackSender> feedback_;
  CodecInForce codecs_;
  LevelController level_;
};

}  // namespace thinwire
