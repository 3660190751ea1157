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
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/support_maps.h"
#include "tensor/tensor.h"
#include "wire/link.h"

namespace thinwire {

class BoundarySender {
 public:
  // `link` outlives the sender, and so does `support`: this end's, shared with the receiver of the
  // other direction; null where no codec needs it.
  static absl::StatusOr<std::unique_ptr<BoundarySender>> New(const BoundarySpec& spec, Link* link,
                                                             Worker worker, SupportMaps* support);
  ~BoundarySender();

  // Training messages sent from now on are of that epoch. Needed with feedback only. The executor's
  // thread.
  void StartEpoch(std::shared_ptr<const EpochRows> rows) { rows_ = std::move(rows); }

  // Queues `x` for encoding and returns: never waits for the network. `key` needs no direction or
  // cut. `compress` false sends the tensor as it is. Returns the first error of anything queued
  // before, InvalidArgument when `x` holds NaN or infinity, is compressed and may not pass; errors
  // name cut, direction and step. The executor's thread.
  absl::Status Send(MessageKey key, uint64_t sample_digest, bool compress, Tensor x);
  // As Send, but encodes at once, and gives the tensor that the receiver will use: `x` itself where
  // it goes exactly, else memory of the sender that is valid until its next message. Only of a
  // sender that works within the caller's thread.
  absl::StatusOr<Tensor> SendAndKeep(MessageKey key, uint64_t sample_digest, bool compress,
                                     Tensor x);
  // Messages without a tensor: "took one of yours" (see Executor on evaluation), and a part of the
  // gradient's norm, of PHASE_GRADIENT_NORM.
  absl::Status SendAcknowledgement(MessageKey key);
  absl::Status SendSumOfSquares(MessageKey key, double sum);

  // Waits until all that was queued has been encoded and handed to the transport; returns the first
  // error.
  absl::Status AwaitEncoded(SteadyTime deadline);
  // Waits until all that was queued has been handed to the transport, and over TCP up to a second
  // longer until the peer has acknowledged it, so that byte counts agree; returns the first error.
  absl::Status Flush(SteadyTime deadline);

  // Any thread, both.
  BoundaryStatistics statistics() const;
  // What was sent in the steps of training up to `last` that were not taken before, in order.
  std::vector<StepStatistics> TakeSteps(uint64_t last);
  uint64_t SocketBytesAcked() const { return link_->SocketBytesAcked(); }
  const BoundarySpec& spec() const { return spec_; }

  // What feedback remembers, for checkpoints. Between a Flush and the next Send.
  FeedbackSender& feedback() { return encoder_->feedback(); }
  LevelController& level() { return encoder_->level(); }

 private:
  BoundarySender(const BoundarySpec& spec, Link* link, Worker worker,
                 std::unique_ptr<MessageEncoder> encoder);
  void WorkerLoop();
  absl::Status Submit(MessageEncoder::Outgoing outgoing);
  PlannedSlice SliceOf(const MessageKey& key, const char* name) const {
    return MessageSlice(spec_, thread_, key, name);
  }
  void AwaitAcknowledgement(SteadyTime deadline) const;
  // Both fill in *received, unless it is null, if `outgoing` wants it.
  absl::Status EncodeAndSend(MessageEncoder::Outgoing outgoing, Tensor* received);
  absl::StatusOr<Message> Encode(const MessageEncoder::Outgoing& outgoing, Tensor* received);
  uint64_t SendTraced(Message message);
  // The step's own counts.
  StepStatistics& AtStep(uint64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A message without a tensor, and one with a tensor.
  MessageEncoder::Outgoing OutgoingOf(MessageKey key) const;
  MessageEncoder::Outgoing OutgoingOf(MessageKey key, uint64_t sample_digest, bool compress,
                                      Tensor x) const;

  const BoundarySpec spec_;
  Link* const link_;
  const Slice::Thread thread_;                     // that encodes; worker_ may still be being made
  std::shared_ptr<const EpochRows> rows_;          // the executor's thread's
  const std::unique_ptr<MessageEncoder> encoder_;  // the thread's that encodes

  mutable std::mutex mutex_;  // of timed waits, which absl::Mutex takes by the time of day
  std::condition_variable changed_;
  std::deque<MessageEncoder::Outgoing> queue_ ABSL_GUARDED_BY(mutex_);
  bool encoding_ ABSL_GUARDED_BY(mutex_) = false;  // the worker has taken one from the queue
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  BoundaryStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  std::deque<StepStatistics> steps_ ABSL_GUARDED_BY(mutex_);  // that nobody has taken
  std::optional<std::thread> worker_;
};

}  // namespace thinwire
