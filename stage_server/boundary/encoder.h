// What a sender makes of one tensor: the level in force, feedback, support, what goes exact, and
// how much was lost. Knows nothing of queues and links.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  // `support` outlives the encoder; null where no codec needs it.
  static absl::StatusOr<std::unique_ptr<MessageEncoder>> New(const BoundarySpec& spec,
                                                             SupportMaps* support);

  struct Outgoing {
    MessageKey key;
    bool compress = false;
    Tensor x;                         // of which nobody changes the memory any more
    const EpochRows* rows = nullptr;  // of the message's epoch; training with feedback only
  };
  // Sets codec, payload and what feedback says of *message. InvalidArgument when `x` holds NaN or
  // infinity, is compressed and may not pass.
  absl::Status Encode(const Outgoing& outgoing, Message* message);

  // True if the error of this message is wanted: training, compressed, every n-th step.
  bool IsMeasured(const Outgoing& outgoing) const;
  // Of the message just encoded.
  absl::StatusOr<MeasuredError> Measure(const Outgoing& outgoing, const Message& message);

  // Lets go of the tensors of the message just encoded.
  void Finish();

  FeedbackSender& feedback() { return *feedback_; }

 private:
  MessageEncoder(const BoundarySpec& spec, SupportMaps* support,
                 std::unique_ptr<FeedbackSender> feedback);
  absl::Status Prepare(const Outgoing& outgoing);
  absl::StatusOr<FeedbackSender::Encoded> EncodeOrPass(FeedbackSender::Outgoing outgoing,
                                                       absl::Span<uint8_t> payload);
  absl::StatusOr<Payload> EncodeBytes(const Outgoing& outgoing);

  const BoundarySpec spec_;
  SupportMaps* const support_;
  const std::unique_ptr<FeedbackSender> feedback_;
  CodecInForce codecs_;
  LevelController level_;

  // Of the message under way or just encoded. Tensors may share the memory of feedback_.
  const Codec* codec_ = nullptr;
  SupportMap map_;
  MessageContext context_;
  FeedbackSender::Encoded encoded_;
};

}  // namespace thinwire
