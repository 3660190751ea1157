// The sending end of a boundary: encodes tensors into messages.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "stage_server/boundary/boundary.h"
#include "stage_server/boundary/encoder.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/sequence_starts.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/support_maps.h"
#include "tensor/tensor.h"
#include "wire/link.h"

namespace thinwire {

class BoundarySender {
 public:
  // Makes a sender. `link` and `support` outlive it. `support` belongs to this end of the cut and
  // is shared with the receiver of the other direction; null where no codec needs it.
  static absl::StatusOr<std::unique_ptr<BoundarySender>> New(const BoundarySpec& spec, Link* link,
                                                             Worker worker, SupportMaps* support);
  ~BoundarySender();

  // Sets the epoch of the training messages sent from now on. Needed with feedback only. Called on
  // the executor's thread.
  void StartEpoch(std::shared_ptr<const EpochRows> rows) { rows_ = std::move(rows); }

  // Queues `x` for encoding and returns without waiting for the network; without a worker it
  // encodes at once. `key` needs no direction or cut. If `compress` is false, the tensor is sent as
  // it is. Returns the first error of anything queued before. OutOfRange if `x` holds NaN or
  // infinity, is to be compressed and may not pass. Errors name cut, direction and step. Called on
  // the executor's thread.
  absl::Status Send(MessageKey key, uint64_t sample_digest, bool compress, Tensor x,
                    SequenceStarts starts = {});
  // Sends as Send does, but encodes at once and returns the tensor that the receiver will use. That
  // is `x` itself where it goes exactly, else memory of the sender that is valid until its next
  // message. Only for a sender that works in the caller's thread.
  absl::StatusOr<Tensor> SendAndKeep(MessageKey key, uint64_t sample_digest, bool compress,
                                     Tensor x);
  // Send messages without a tensor: the acknowledgement of an evaluation batch (see Executor), and
  // a part of the gradient's norm (PHASE_GRADIENT_NORM).
  absl::Status SendAcknowledgement(MessageKey key);
  absl::Status SendSumOfSquares(MessageKey key, double sum);

  // Waits until everything queued has been encoded and handed to the transport. Returns the first
  // error.
  absl::Status AwaitEncoded(SteadyTime deadline);
  // Waits until everything queued has been handed to the transport. Over TCP it then waits up to a
  // second for the peer to acknowledge it, so that byte counts agree. Returns the first error.
  absl::Status Flush(SteadyTime deadline);

  // Returns a copy of the counts. Thread-safe, as TakeSteps is.
  BoundaryStatistics statistics() const { return counts_.all(); }
  // Removes and returns, in order, the counts of training steps up to `last` that were not taken
  // before.
  std::vector<StepStatistics> TakeSteps(uint64_t last) { return counts_.TakeSteps(last); }
  uint64_t SocketBytesAcked() const { return link_->SocketBytesAcked(); }
  const BoundarySpec& spec() const { return spec_; }

  // State of a replica, for checkpoints. Use it only between a Flush and the next Send.
  FeedbackSender& feedback(int replica = 0) { return encoders_[replica]->feedback(); }
  LevelController& level(int replica = 0) { return encoders_[replica]->level(); }

 private:
  using Encoders = std::vector<std::unique_ptr<MessageEncoder>>;
  BoundarySender(const BoundarySpec& spec, Link* link, Worker worker, Encoders encoders);
  void WorkerLoop();
  absl::Status Submit(MessageEncoder::Outgoing outgoing);
  PlannedSlice SliceOf(const MessageKey& key, const char* name) const {
    return MessageSlice(spec_, thread_, key, name);
  }
  void AwaitAcknowledgement(SteadyTime deadline) const;
  // A message to be sent, and what is counted of it.
  struct Made {
    Message message;
    Tensor received = {};  // what the receiver uses, if that is wanted
    std::optional<double> level = {};
    std::optional<MeasuredError> error = {};
  };
  // Returns what the receiver uses, if `outgoing` wants it.
  absl::StatusOr<Tensor> EncodeAndSend(MessageEncoder::Outgoing outgoing);
  absl::StatusOr<Made> Encode(const MessageEncoder::Outgoing& outgoing);
  uint64_t SendTraced(Message message);
  // Make a message without a tensor and one with a tensor.
  MessageEncoder::Outgoing OutgoingOf(MessageKey key) const;
  MessageEncoder::Outgoing OutgoingOf(MessageKey key, uint64_t sample_digest, bool compress,
                                      Tensor x) const;

  const BoundarySpec spec_;
  Link* const link_;
  const Slice::Thread thread_;             // encodes; worker_ may not be set yet when it runs
  std::shared_ptr<const EpochRows> rows_;  // for the executor's thread only
  const Encoders encoders_;                // by replica; for the encoding thread only

  mutable std::mutex mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  std::deque<MessageEncoder::Outgoing> queue_ ABSL_GUARDED_BY(mutex_);
  bool encoding_ ABSL_GUARDED_BY(mutex_) = false;  // the worker has taken one from the queue
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  MessageCounts counts_;
  std::optional<std::thread> worker_;
};

}  // namespace thinwire
