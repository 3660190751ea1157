// The receiving end of a boundary: decodes messages and checks that they are the ones expected.
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
