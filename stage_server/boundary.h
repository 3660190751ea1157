// The two ends of one direction of one cut: a sender encodes tensors into messages, a receiver
// decodes them and checks that they are the ones expected. Whatever a compensation has to
// remember belongs here, at both ends.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compress/codec.h"
#include "stage_server/link.h"
#include "stage_server/statistics.h"
#include "tensor/tensor.h"

namespace thinwire {

// One direction of one cut; equal at both ends.
struct BoundarySpec {
  std::string name;  // of the cut: "layer1"
  std::string peer;  // who is at the other end, for messages: "stage 2 (10.0.0.7:4700)"
  uint32_t cut = 0;  // index in model order
  Direction direction = DIRECTION_UNSPECIFIED;
  Shape sample;  // batch extent 1
  DType compute = DType::kF32;
  CodecSpec codec;
  int64_t max_batch = 0;  // samples of the largest message
  uint64_t codec_seed = 0;
  int64_t error_every = 0;   // distortion is measured on every n-th step; 0: never
  int capacity = 1;          // messages in flight
  Device* device = nullptr;  // of the tensors
  CodecKernels* kernels = nullptr;
};

// The longest payload that this direction can carry, exact messages included.
absl::StatusOr<uint64_t> MaxPayloadBytes(const BoundarySpec& spec);

// How one end works: on a thread of its own (a wire), or within the caller's (inside a process).
enum class Worker { kOwnThread, kInline };

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

class BoundaryReceiver {
 public:
  // `link` outlives the receiver and is closed before it is destroyed.
  static absl::StatusOr<std::unique_ptr<BoundaryReceiver>> New(const BoundarySpec& spec, Link* link,
                                                               Worker worker);
  ~BoundaryReceiver();

  struct Expected {
    MessageKey key;  // direction and cut are filled in
    int64_t batch = 0;
    bool compressed = false;
    // Absent where this stage cannot know: the message's own digest is then handed on.
    std::optional<uint64_t> sample_digest;
  };
  struct Received {
    Tensor tensor;
    uint64_t sample_digest = 0;
  };

  // The next message, which must be the expected one. DeadlineExceeded names cut, peer and the
  // message waited for; InvalidArgument field, value met and wanted. The executor's thread.
  absl::StatusOr<Received> Receive(Expected expected, absl::Time deadline);
  absl::Status ReceiveAcknowledgement(MessageKey key, absl::Time deadline);

  BoundaryStatistics statistics() const;
  const BoundarySpec& spec() const { return spec_; }

 private:
  struct Decoded {
    MessageKey key;
    CodecSpec codec;
    uint64_t sample_digest = 0;
    Tensor tensor;  // empty for an acknowledgement
  };

  BoundaryReceiver(const BoundarySpec& spec, Link* link, Worker worker,
                   std::unique_ptr<Codec> codec, std::unique_ptr<Codec> exact);
  void WorkerLoop();
  absl::StatusOr<Decoded> ReceiveAndDecode(absl::Time deadline);
  absl::StatusOr<Decoded> Next(const MessageKey& wanted, absl::Time deadline);
  absl::Status CheckHeader(const Message& message) const;
  absl::StatusOr<Tensor> Decode(const Message& message);

  const BoundarySpec spec_;
  Link* const link_;
  const std::unique_ptr<Codec> codec_;
  const std::unique_ptr<Codec> exact_;  // what carries uncompressed messages

  mutable std::mutex mutex_;  // guards what follows, but for the worker
  std::condition_variable changed_;
  std::deque<Decoded> ready_;
  absl::Status status_;
  BoundaryStatistics statistics_;
  std::optional<std::thread> worker_;
};

}  // namespace thinwire
