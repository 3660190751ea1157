// Turns one tensor into a message: chooses the level, applies feedback and support, decides what
// goes exact and measures the loss. Knows nothing of queues and links.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "compress/codec.h"
#include "compress/feedback/feedback.h"
#include "compress/level.h"
#include "compress/support.h"
#include "stage_server/boundary/boundary.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/sequence_starts.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/support_maps.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

// Payloads that an encoder leaves in the memory of the tensors' device, where that is not the host:
// none, those of exact tensors, or also those of codecs that can write there.
enum class LeftOnDevice { kNone, kExact, kAll };

// Not thread-safe. Messages are encoded in the order in which they are sent.
class MessageEncoder {
 public:
  // Makes an encoder. `support` outlives it; null where no codec needs it. Payloads that are not
  // `left` on the device are in host memory.
  static absl::StatusOr<std::unique_ptr<MessageEncoder>> New(const BoundarySpec& spec,
                                                             SupportMaps* support,
                                                             LeftOnDevice left);

  struct Outgoing {
    MessageKey key;
    uint64_t sample_digest = 0;
    bool compress = false;
    Tensor x;                               // nobody changes its memory any more
    std::shared_ptr<const EpochRows> rows;  // the epoch's; for training with feedback only
    bool want_received = false;             // fill in Encoded::feedback.received
    SequenceStarts starts = {};
    std::optional<double> sum_of_squares = {};  // payload of a message without a tensor
    SteadyTime submitted = {};                  // when it was queued; set in a traced step
  };
  // A message and what was used to make it. Some of its tensors share memory with the encoder's
  // state, so it must be destroyed before the next message is encoded.
  struct Encoded {
    Message message;
    const Codec* codec = nullptr;         // codec in force; the encoder owns it
    MessageContext context;               // what the codec was given
    std::unique_ptr<SupportMap> support;  // the map that `context` points to
    std::vector<uint32_t> document_rows;  // to which it points, too
    std::optional<double> level;          // LevelOf a codec that coded it and may change
    FeedbackSender::Encoded feedback;
  };
  // Encodes `outgoing`. OutOfRange if its tensor holds NaN or infinity, is to be compressed, and
  // on_nonfinite says that this is an error.
  absl::StatusOr<Encoded> Encode(const Outgoing& outgoing);

  // Returns whether the error of this message is to be measured: it is a training message, is
  // compressed, and its step is a multiple of `error_every`.
  bool IsMeasured(const Outgoing& outgoing) const;
  // Measures the difference between `outgoing` and what the receiver makes of `encoded`. A level
  // that follows the error is told of it.
  absl::StatusOr<MeasuredError> Measure(const Outgoing& outgoing, const Encoded& encoded);

  const BoundarySpec& spec() const { return spec_; }
  FeedbackSender& feedback() { return *feedback_; }
  LevelController& level() { return level_; }

 private:
  MessageEncoder(const BoundarySpec& spec, SupportMaps* support, LeftOnDevice left,
                 std::unique_ptr<FeedbackSender> feedback);
  absl::StatusOr<Payload> RawBytes(const Tensor& x) const;
  bool StaysOnDevice(const Codec& codec, const Tensor& x) const;
  absl::StatusOr<Encoded> Prepare(const Outgoing& outgoing);
  absl::StatusOr<FeedbackSender::Encoded> EncodeOrPass(const Codec& codec,
                                                       FeedbackSender::Outgoing outgoing,
                                                       absl::Span<uint8_t> payload);
  absl::Status EncodePayload(const Outgoing& outgoing, Encoded* encoded);

  const BoundarySpec spec_;
  SupportMaps* const support_;
  const LeftOnDevice left_;
  const std::unique_ptr<FeedbackSender> feedback_;
  CodecInForce codecs_;
  LevelController level_;
};

}  // namespace thinwire
