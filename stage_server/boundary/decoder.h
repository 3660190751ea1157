// What a receiver makes of one message: whether it may be, the level it was coded at, state and
// support. The mirror of encoder.h.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/feedback.h"
#include "stage_server/boundary/boundary.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/support_maps.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// One thread at a time. Messages are decoded in the order in which they came.
class MessageDecoder {
 public:
  // As MessageEncoder::New.
  static absl::StatusOr<std::unique_ptr<MessageDecoder>> New(const BoundarySpec& spec,
                                                             SupportMaps* support);

  // InvalidArgument if type, shape, codec or marks of state are not what this direction can carry
  // in that epoch and phase. Whether a message had to be exact is for BoundaryReceiver::Receive.
  absl::Status Check(const Message& message) const;

  // True if Decode needs the rows of the message's epoch.
  bool NeedsRows(const Message& message) const;

  // `rows` of the message's epoch, or null where none are needed. The errors of
  // FeedbackReceiver::Decode.
  absl::StatusOr<Tensor> Decode(const Message& message, const EpochRows* rows);

  FeedbackReceiver& feedback() { return *feedback_; }

 private:
  MessageDecoder(const BoundarySpec& spec, SupportMaps* support,
                 std::unique_ptr<FeedbackReceiver> feedback)
      : spec_(spec), support_(support), feedback_(std::move(feedback)), codecs_(spec.kernels) {}
  absl::Status CheckBasis(const Message& message) const;
  absl::StatusOr<Tensor> DecodeBytes(const Message& message, const EpochRows* rows);
  absl::StatusOr<Tensor> TakeExact(const Message& message) const;
  absl::StatusOr<Payload> OnHost(const Payload& payload) const;

  const BoundarySpec spec_;
  SupportMaps* const support_;
  const std::unique_ptr<FeedbackReceiver> feedback_;
  CodecInForce codecs_;
};

}  // namespace thinwire
