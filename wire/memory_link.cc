#include "wire/memory_link.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "wire/frame.h"
#include "wire/inbox.h"

namespace thinwire {
namespace {

// The inboxes of both ends, which they share.
struct Ends {
  Ends(const LinkOptions& first, const LinkOptions& second) : inbox{Inbox(first), Inbox(second)} {}
  Inbox inbox[2];
};

class MemoryLink final : public Link {
 public:
  MemoryLink(const LinkOptions& options, std::shared_ptr<Ends> ends, int own)
      : options_(options),
        ends_(std::move(ends)),
        own_(ends_->inbox[own]),
        peer_(ends_->inbox[1 - own]) {}
  ~MemoryLink() override { Close(absl::CancelledError("the link was destroyed")); }

  uint64_t Send(Message message) override {
    uint64_t wire_bytes = 0;
    for (const OutgoingFrame& frame : ToFrames(message, options_.run, options_.generation)) {
      wire_bytes += frame.wire_bytes();
      if (open_) Deliver(frame);
    }
    return wire_bytes;
  }

  absl::StatusOr<Message> Receive(SteadyTime deadline) override {
    return own_.Receive(deadline, "");
  }

  void Close(absl::Status reason) override {
    open_ = false;
    own_.Close(reason);
    peer_.PeerIsGone(absl::IsCancelled(reason)
                         ? "closed the link"
                         : absl::StrCat("closed the link: ", reason.ToString()));
  }

  absl::Status Flush(SteadyTime) override { return absl::OkStatus(); }

  uint64_t SocketBytesAcked() const override { return 0; }

 private:
  void Deliver(const OutgoingFrame& frame) {
    const auto prefix = std::make_shared<const std::string>(frame.prefix);
    IncomingFrame incoming;
    incoming.parts.push_back(BytesOf(*prefix));
    if (!frame.payload.bytes.empty()) incoming.parts.push_back(frame.payload.bytes);
    incoming.owner =
        std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
            prefix, frame.payload.owner);
    const absl::Status taken = peer_.Push(incoming);
    if (taken.ok()) return;
    // The peer's inbox keeps its own reason; this end learns that nothing will come any more.
    open_ = false;
    own_.PeerIsGone(absl::StrCat("refused a frame: ", taken.message()));
  }

  const LinkOptions options_;
  const std::shared_ptr<Ends> ends_;
  Inbox& own_;
  Inbox& peer_;
  std::atomic<bool> open_{true};
};

}  // namespace

std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> NewMemoryLinks(
    const LinkOptions& upstream, const LinkOptions& downstream) {
  const auto ends = std::make_shared<Ends>(upstream, downstream);
  return {std::make_unique<MemoryLink>(upstream, ends, 0),
          std::make_unique<MemoryLink>(downstream, ends, 1)};
}

}  // namespace thinwire
