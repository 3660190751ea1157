// The receiving end of a boundary: decodes messages and checks that they are the ones expected.
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
#include "stage_server/boundary/decoder.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/received_payload.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/boundary/support_maps.h"
#include "tensor/tensor.h"
#include "wire/link.h"

namespace thinwire {

class BoundaryReceiver {
 public:
  // Makes a receiver. `link` outlives it; `support` as for the sender.
  static absl::StatusOr<std::unique_ptr<BoundaryReceiver>> New(const BoundarySpec& spec, Link* link,
                                                               Worker worker, SupportMaps* support);
  ~BoundaryReceiver();

  // Sets the rows of an epoch. Where the receiver keeps state, a message of the epoch waits for
  // this call, for at most BoundarySpec::patience, and must come in order (MessageOrder). Called on
  // the executor's thread.
  void StartEpoch(std::shared_ptr<const EpochRows> rows);

  struct Expected {
    MessageKey key;  // Receive fills in direction and cut
    int64_t batch = 0;
    bool compressed = false;
    // Absent where this stage cannot know it: then the message's own digest is handed on.
    std::optional<uint64_t> sample_digest;
  };
  struct Received {
    Tensor tensor;
    uint64_t sample_digest = 0;
    std::vector<uint32_t> document_starts = {};  // as in MessageHeader
    // With BoundarySpec::keeps_payloads; null where the tensor cannot be made again from it, or
    // that would save little.
    std::shared_ptr<const ReceivedPayload> payload = nullptr;
  };

  // Waits for the next message, which must be the expected one. DeadlineExceeded names cut, peer
  // and the message waited for. InvalidArgument names the field, its value and the one wanted.
  // FailedPrecondition says that the states of the two ends contradict one another. All errors name
  // the peer. Called on the executor's thread.
  absl::StatusOr<Received> Receive(Expected expected, SteadyTime deadline);
  absl::Status ReceiveAcknowledgement(MessageKey key, SteadyTime deadline);
  // Receives the sum of a PHASE_GRADIENT_NORM message.
  absl::StatusOr<double> ReceiveSumOfSquares(MessageKey key, SteadyTime deadline);

  // Closes the link and ends every wait, which then returns `reason`. Thread-safe.
  void Stop(const absl::Status& reason);

  BoundaryStatistics statistics() const { return counts_.all(); }
  const BoundarySpec& spec() const { return spec_; }

  // State of a replica, for checkpoints. Use it only after the last message of the steps that
  // StartEpoch announced and before the next one.
  FeedbackReceiver& feedback(int replica = 0) { return decoders_[replica]->feedback(); }

 private:
  struct Decoded : MessageHeader {
    Tensor tensor;  // empty for an acknowledgement or a sum of squares
    std::shared_ptr<const ReceivedPayload> payload = nullptr;  // as in Received
  };

  using Decoders = std::vector<std::unique_ptr<MessageDecoder>>;
  BoundaryReceiver(const BoundarySpec& spec, Link* link, Worker worker, Decoders decoders);
  void WorkerLoop();
  absl::StatusOr<Decoded> ReceiveAndDecode(SteadyTime deadline);
  absl::StatusOr<Decoded> Next(const MessageKey& wanted, SteadyTime deadline);
  // Waits for `is_over` until the deadline, which moves for as long as the run advances. Returns
  // false if the wait timed out.
  bool Await(std::unique_lock<std::mutex>* lock, SteadyTime deadline,
             const std::function<bool()>& is_over);
  // Returns the next message, which must be one without a tensor.
  absl::StatusOr<Decoded> NextWithoutTensor(MessageKey wanted, SteadyTime deadline);
  absl::Status Overdue(const MessageKey& wanted) const;
  // Sets tensor and payload.
  absl::Status Decode(const Message& message, Decoded* decoded);
  absl::StatusOr<std::shared_ptr<const EpochRows>> RowsOf(const MessageKey& key);
  absl::Status CheckReceived(const Expected& expected, const Decoded& got) const;
  // Prefixes `status` with cut, peer and message, as every error about a message has them.
  absl::Status Named(const MessageKey& key, const absl::Status& status) const;

  const BoundarySpec spec_;
  Link* const link_;
  const Decoders decoders_;  // by replica; for the decoding thread only
  const bool has_worker_;    // worker_ may not be set yet when its thread looks

  mutable std::mutex mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  std::deque<Decoded> ready_ ABSL_GUARDED_BY(mutex_);
  MessageOrder order_ ABSL_GUARDED_BY(mutex_);   // of messages that change state
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // why nothing more is decoded
  MessageCounts counts_;
  std::optional<std::thread> worker_;
};

}  // namespace thinwire
