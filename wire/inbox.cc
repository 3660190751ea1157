#include "wire/inbox.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"

namespace thinwire {
namespace {

bool IsLast(const FrameHeader& header) { return header.chunk() + 1 == header.chunks(); }

}  // namespace

Inbox::Inbox(const LinkOptions& options)
    : options_(options), checker_(options), assembler_(options) {}

absl::Status Inbox::Check(const IncomingFrame& frame, ParsedFrame* parsed) {
  absl::StatusOr<ParsedFrame> result = ParseFrame(frame.parts);
  if (!result.ok()) {
    return absl::Status(result.status().code(),
                        absl::StrCat(LinkPrefix(options_), result.status().message()));
  }
  *parsed = *std::move(result);
  return checker_.Check(*parsed);
}

absl::Status Inbox::Enqueue(Arrived arrived) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!end_.ok()) return end_;
  const FrameHeader& header = arrived.frame.header;
  if (header.chunk() == 0 && num_complete_ >= options_.queue_capacity) {
    return absl::ResourceExhaustedError(absl::StrCat(
        LinkPrefix(options_), "a message more than the ", options_.queue_capacity,
        " that may wait here: step ", header.step(), ", microbatch ", header.microbatch()));
  }
  if (IsLast(header)) ++num_complete_;
  frames_.push_back(std::move(arrived));
  arrived_.notify_all();
  return absl::OkStatus();
}

absl::Status Inbox::Push(const IncomingFrame& frame) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!end_.ok()) return end_;
  }
  Arrived arrived;
  absl::Status status = Check(frame, &arrived.frame);
  arrived.owner = frame.owner;
  if (status.ok()) status = Enqueue(std::move(arrived));
  if (!status.ok()) End(status);
  return status;
}

void Inbox::End(const absl::Status& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (end_.ok()) end_ = reason;
  arrived_.notify_all();
}

void Inbox::PeerIsGone(const std::string& how) {
  End(absl::UnavailableError(absl::StrCat(LinkPrefix(options_), "the peer ", how)));
}

void Inbox::Close(const absl::Status& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (end_.ok()) end_ = reason;
  frames_.clear();
  num_complete_ = 0;
  arrived_.notify_all();
}

absl::Status Inbox::Overdue(const std::string& waiting) const {
  std::string text =
      absl::StrCat(LinkPrefix(options_), "no ",
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
                               [this] { return !frames_.empty() || !end_.ok(); })) {
        return Overdue(waiting);
      }
      if (frames_.empty()) return EndMet();
      next = std::move(frames_.front());
      frames_.pop_front();
      if (IsLast(next.frame.header)) --num_complete_;
    }
    absl::StatusOr<std::optional<Message>> message = assembler_.Add(next.frame);
    if (!message.ok()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      frames_.clear();
      return end_ = message.status();
    }
    if (message->has_value()) {
      ++num_received_;
      return **std::move(message);
    }
  }
}

}  // namespace thinwire
