#include "transport/stream_link.h"

#include <utility>

#include "base/steady_time.h"

namespace thinwire {
namespace {

// Longest time that telling the peer why the call ends may take before the call is cancelled.
constexpr absl::Duration kMaxTelling = absl::Seconds(1);
// Longest time that a cancelled call may take to end. gRPC needs milliseconds; this only limits
// what a defect could cost.
constexpr absl::Duration kMaxEnding = absl::Seconds(10);

class StreamLink final : public Link {
 public:
  explicit StreamLink(std::shared_ptr<GrpcStream> stream) : stream_(std::move(stream)) {}
  ~StreamLink() override {
    stream_->Close(absl::CancelledError("the link was destroyed"));
    if (stream_->WaitDone(SteadyTime::Now() + kMaxTelling)) return;
    stream_->Cancel();
    if (stream_->WaitDone(SteadyTime::Now() + kMaxEnding)) return;
    // Leaks, which is better than freeing what gRPC still uses.
    new std::shared_ptr<GrpcStream>(stream_);
  }

  uint64_t Send(Message message) override { return stream_->Send(std::move(message)); }
  absl::StatusOr<Message> Receive(SteadyTime deadline) override {
    return stream_->Receive(deadline);
  }
  void Close(absl::Status reason) override { stream_->Close(reason); }
  absl::Status Flush(SteadyTime deadline) override { return stream_->Flush(deadline); }
  const Device* sends_from() const override {
    return stream_->options().copies != nullptr ? stream_->options().device : nullptr;
  }
  Way last_way() const override { return stream_->last_way(); }
  uint64_t SocketBytesAcked() const override { return stream_->SocketBytesAcked(); }

 private:
  const std::shared_ptr<GrpcStream> stream_;
};

}  // namespace

std::unique_ptr<Link> NewStreamLink(std::shared_ptr<GrpcStream> stream) {
  return std::make_unique<StreamLink>(std::move(stream));
}

}  // namespace thinwire
