// Turns one received message back into a tensor: checks it, finds the level at which it was coded,
// and keeps state and support. The mirror of encoder.h.
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

// Not thread-safe. Messages are decoded in the order in which they came.
class MessageDecoder {
 public:
  // Makes a decoder; parameters as for MessageEncoder::New.
  static absl::StatusOr<std::unique_ptr<MessageDecoder>> New(const BoundarySpec& spec,
                                                             SupportMaps* support);

  // Checks that this direction can carry the message's type, shape, codec and marks of state in its
  // epoch and phase; InvalidArgument if not. Whether a message had to be exact is checked by
  // BoundaryReceiver::Receive.
  absl::Status Check(const Message& message) const;

  // Returns whether Decode needs the rows of the message's epoch.
  bool NeedsRows(const Message& message) const;

  // Decodes a checked message. `rows` are those of the message's epoch, or null where none are
  // needed. Returns the errors of FeedbackReceiver::Decode.
  absl::StatusOr<Tensor> Decode(const Message& message, const EpochRows* rows);

  // Returns whether this message, decoded last, could be decoded again from its payload alone: no
  // state, support or exactness was in it.
  bool DecodedAlone(const Message& message) const;

  const BoundarySpec& spec() const { return spec_; }
  FeedbackReceiver& feedback() { return *feedback_; }

 private:
  MessageDecoder(const BoundarySpec& spec, SupportMaps* support,
                 std::unique_ptr<FeedbackReceiver> feedback)
      : spec_(spec), support_(support), feedback_(std::move(feedback)), codecs_(spec.kernels) {}
  absl::Status CheckBasis(const Message& message) const;
  absl::Status CheckDocuments(const Message& message) const;
  absl::StatusOr<Tensor> DecodeBytes(const Message& message, const EpochRows* rows);
  absl::StatusOr<Tensor> TakeExact(const Message& message) const;

  const BoundarySpec spec_;
  SupportMaps* const support_;
  const std::unique_ptr<FeedbackReceiver> feedback_;
  CodecInForce codecs_;
};

}  // namespace thinwire
