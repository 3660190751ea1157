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
#include "absl/time/time.h"
#include "compress/codec.h"
#include "stage_server/boundary.h"
#include "stage_server/link.h"
#include "stage_server/statistics.h"
#include "tensor/tensor.h"

namespace thinwire {

class BoundarySender {
 public:
  // `link` outlives the sender.
  static absl::StatusOr<std::unique_ptr<BoundarySender>> New(const BoundarySpec& spec, Link* link,
                                                             Worker worker);
  ~BoundarySender();

  // Queues `x` for encoding and returns: never waits for the network. `key` needs no direction or
  // cut. `compress` false sends the tensor as it is. Returns the first error of anything queued
  // before, InvalidArgument when `x` holds NaN or infinity and is compressed; errors name cut,
  // direction and step. The executor's thread.
  absl::Status Send(MessageKey key, uint64_t sample_digest, bool compress, Tensor x);
  // A message without a tensor: "took one of yours" (see Executor on evaluation).
  absl::Status SendAcknowledgement(MessageKey key);

  // Waits until all that was queued has been handed to the transport, and over TCP up to a second
  // longer until the peer has acknowledged it, so that byte counts agree; returns the first error.
  absl::Status Flush(absl::Time deadline);

  // Any thread.
  BoundaryStatistics statistics() const;
  uint64_t SocketBytesAcked() const { return link_->SocketBytesAcked(); }
  const BoundarySpec& spec() const { return spec_; }

 private:
  struct Job {
    MessageKey key;
    uint64_t sample_digest;
    bool compress;
    Tensor x;
  };

  BoundarySender(const BoundarySpec& spec, Link* link, Worker worker, std::unique_ptr<Codec> codec,
                 std::unique_ptr<Codec> exact);
  void WorkerLoop();
  absl::Status Submit(Job job);
  void AwaitAcknowledgement(absl::Time deadline) const;
  absl::Status EncodeAndSend(Job job);
  absl::StatusOr<Payload> Encode(const Job& job);
  absl::Status MeasureError(const Job& job, const Payload& payload);
  absl::Status Annotate(const absl::Status& status, const MessageKey& key) const;

  const BoundarySpec spec_;
  Link* const link_;
  const std::unique_ptr<Codec> codec_;
  const std::unique_ptr<Codec> exact_;  // what carries uncompressed messages

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
