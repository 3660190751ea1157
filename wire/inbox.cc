#include "wire/inbox.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"

namespace thinwire {

Inbox::Inbox(const LinkOptions& options)
    : options_(options), checker_(options), assembler_(options) {}

absl::StatusOr<PayloadChunk> Inbox::Check(const IncomingFrame& frame) {
  const bool is_unreadable = frame.place == PayloadPlace::kDevice;
  const absl::StatusOr<ParsedFrame> parsed =
      ParseFrame(frame.parts, is_unreadable ? frame.parts.back().size() : 0);
  if (!parsed.ok()) return Annotated(parsed.status(), LinkAndPeer(options_));
  ASSIGN_OR_RETURN(PayloadChunk chunk, checker_.Check(*parsed));
  static_cast<PayloadOrigin&>(chunk) = frame;
  ASSIGN_OR_RETURN(chunk.place, PlaceOf(chunk, frame));
  return chunk;
}

// A device may copy only from where the payload should begin, not from wherever the peer's frame
// says.
absl::StatusOr<PayloadPlace> Inbox::PlaceOf(const PayloadChunk& chunk,
                                            const IncomingFrame& frame) const {
  if (frame.place == PayloadPlace::kHost) return PayloadPlace::kHost;
  const bool begins_there =
      chunk.payload.size() == 1 && chunk.payload[0].data() == frame.parts.back().data();
  if (begins_there) return frame.place;
  if (frame.place == PayloadPlace::kLocked) return PayloadPlace::kHost;
  return absl::InvalidArgumentError(absl::StrCat(
      LinkAndPeer(options_), ": a payload in memory of the device, of which the frame has ",
      chunk.payload.size(), " parts, want one that begins there"));
}

absl::Status Inbox::Enqueue(Arrived arrived) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!end_.ok()) return end_;
  const PayloadChunk& chunk = arrived.chunk;
  // Judged at the first chunk of a message; max_payload_bytes bounds what its others bring.
  if (chunk.message && num_complete_ >= options_.queue_capacity) {
    const MessageKey& key = chunk.message->key;
    return absl::ResourceExhaustedError(
        absl::StrCat(LinkAndPeer(options_), ": a message more than the ", options_.queue_capacity,
                     " that may wait here: step ", key.step, ", microbatch ", key.microbatch));
  }
  if (chunk.is_last()) {
    ++num_complete_;
    if (options_.stamps_arrivals) arrived.at = SteadyTime::Now();
  }
  chunks_.push_back(std::move(arrived));
  arrived_.notify_all();
  return absl::OkStatus();
}

absl::Status Inbox::Push(const IncomingFrame& frame) {
  // What follows the end is not even parsed. Enqueue looks again, as the end may come meanwhile.
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!end_.ok()) return end_;
  }
  if (options_.on_frame) options_.on_frame();
  absl::StatusOr<PayloadChunk> chunk = Check(frame);
  const absl::Status status = chunk.ok() ? Enqueue({*std::move(chunk)}) : chunk.status();
  if (!status.ok()) End(status);
  return status;
}

void Inbox::End(const absl::Status& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (end_.ok()) end_ = reason;
  arrived_.notify_all();
}

void Inbox::PeerIsGone(const std::string& how) {
  End(absl::UnavailableError(absl::StrCat(LinkAndPeer(options_), ": the peer ", how)));
}

void Inbox::Close(const absl::Status& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (end_.ok()) end_ = reason;
  chunks_.clear();
  num_complete_ = 0;
  arrived_.notify_all();
}

absl::Status Inbox::Overdue(const std::string& waiting) const {
  std::string text =
      absl::StrCat(LinkAndPeer(options_), ": no ",
                   options_.receives == DIRECTION_GRADIENT ? "gradient" : "activation",
                   " by the deadline after ", num_received_, " messages");
  if (assembler_.chunks() > 0) {
    absl::StrAppend(&text, " and ", assembler_.chunks(), " chunks of the next");
  }
  if (!waiting.empty()) absl::StrAppend(&text, "; ", waiting);
  return absl::DeadlineExceededError(text);
}

absl::Status Inbox::EndMet() const {
  if (assembler_.chunks() == 0) return end_;
  return absl::Status(end_.code(),
                      absl::StrCat(end_.message(), " (in the middle of a message, after ",
                                   assembler_.chunks(), " chunks)"));
}

absl::StatusOr<Message> Inbox::Receive(SteadyTime deadline, const std::string& waiting) {
  for (;;) {
    Arrived next;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!arrived_.wait_until(lock, deadline.chrono(),
                               [this] { return !chunks_.empty() || !end_.ok(); })) {
        return Overdue(waiting);
      }
      if (chunks_.empty()) return EndMet();
      next = std::move(chunks_.front());
      chunks_.pop_front();
      if (next.chunk.is_last()) --num_complete_;
    }
    const SteadyTime at = next.at;
    // Copies and checks the chunk without the lock, so that the transport can push further frames.
    absl::StatusOr<std::optional<Message>> message = assembler_.Add(std::move(next.chunk));
    if (!message.ok()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      chunks_.clear();
      return end_ = message.status();
    }
    if (message->has_value()) {
      ++num_received_;
      (*message)->arrived = at;
      return **std::move(message);
    }
  }
}

}  // namespace thinwire
