// The sending end of a boundary: encodes tensors into messages.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

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
  // A message without a tensor: "took one of yours" (see Executor on evaluation).
  absl::Status SendAcknowledgement(MessageKey key);

  // Waits until all that was queued has been handed to the transport, and over TCP up to a second
  // longer until the peer has acknowledged it, so that byte counts agree; returns the first error.
  absl::Status Flush(SteadyTime deadline);

  // Any thread.
  BoundaryStatistics statistics() const;
  uint64_t SocketBytesAcked() const { return link_->SocketBytesAcked(); }
  const BoundarySpec& spec() const { return spec_; }

  // What feedback remembers, for checkpoints. Between a Flush and the next Send.
  FeedbackSender& feedback() { return encoder_->feedback(); }

 private:
  struct Job {
    MessageEncoder::Outgoing outgoing;
    uint64_t sample_digest = 0;
    std::shared_ptr<const EpochRows> rows;
  };

  BoundarySender(const BoundarySpec& spec, Link* link, Worker worker,
                 std::unique_ptr<MessageEncoder> encoder);
  void WorkerLoop();
  absl::Status Submit(Job job);
  void AwaitAcknowledgement(SteadyTime deadline) const;
  absl::Status EncodeAndSend(Job job);
  absl::Status Encode(const Job& job, Message* message);
  absl::Status Annotate(const absl::Status& status, const MessageKey& key) const;

  const BoundarySpec spec_;
  Link* const link_;
  std::shared_ptr<const EpochRows> rows_;          // of the executor's thread
  const std::unique_ptr<MessageEncoder> encoder_;  // of whoever encodes

  mutable std::mutex mutex_;  // guards what follows, but for the worker
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool encoding_ = false;  // the worker has taken a job
  bool stopping_ = false;
  absl::Status status_;
  BoundaryStatistics statistics_;
  std::optional<std::thread> worker_;
};

}  // namespace thinwire
