#include "coordinator/fleet/heartbeat.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire {
namespace {

// If a renewal and the wait before it take this much longer than they may, this process was paused.
constexpr absl::Duration kPause = absl::Seconds(2);
// The same, as part of the stage's patience.
constexpr double kPauseOfPatience = 0.2;
// Longest interval where a loss is to be seen early.
constexpr absl::Duration kOften = absl::Milliseconds(250);
// Shortest time of a renewal, and longest between two, of a stage that seems lost.
constexpr absl::Duration kShort = absl::Milliseconds(50);

// Returns whether nothing was heard from the stage, which may still answer.
bool IsSilence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

Heartbeat::Heartbeat(StageClient* client, const HeartbeatOptions& options, Pulse* pulse,
                     OnFailure on_failure)
    : client_(client),
      options_(options),
      interval_(options.answer_times == nullptr ? options.interval
                                                : std::min(options.interval, kOften)),
      pulse_(pulse),
      on_failure_(std::move(on_failure)) {
  thread_ = std::thread([this] { Loop(); });
}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_one();
  client_->CancelRenewals();
  thread_.join();
}

bool Heartbeat::WaitForStop(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  return stopping_.wait_until(lock, (SteadyTime::Now() + timeout).chrono(),
                              [this] { return stop_; });
}

absl::Duration Heartbeat::Patience() const {
  if (options_.answer_times == nullptr) return options_.silence;
  return std::min(options_.silence, options_.answer_times->Patience(client_->address()));
}

bool Heartbeat::SeemsLost() const {
  if (options_.answer_times == nullptr || silent_ == absl::ZeroDuration()) return false;
  // Other stages' answers tell of their last advances an interval later.
  return !pulse_->HasAdvancedSince(answered_ + 2 * interval_);
}

absl::Duration Heartbeat::Timeout() const {
  // At most half of the silence: if a pause uses up one renewal, there is time for another.
  const absl::Duration most = std::min(options_.silence / 2, options_.silence - silent_);
  if (options_.answer_times == nullptr) return most;
  if (SeemsLost()) {
    const absl::Duration left = pulse_->StandStill(Patience()) - since_;
    // A quarter of the patience is twice its slowest answer: one that still can come, does.
    return std::min(most, std::max({left, kShort, Patience() / 4}));
  }
  // A slow answer has more and more time, so that it comes at all while the run advances.
  return std::min(most, std::max(Patience(), silent_));
}

void Heartbeat::Count(const RenewResponse& answer, absl::Duration time) {
  if (options_.answer_times != nullptr) {
    options_.answer_times->Add(client_->address(), silent_ + time, since_);
  }
  silent_ = absl::ZeroDuration();
  // A stage that is configured again counts from 0.
  const uint64_t advances = answer.advances();
  pulse_->Add(advances < last_advances_ ? advances : advances - last_advances_, since_);
  last_advances_ = advances;
  if (answer.ends() && !std::exchange(told_end_, true)) {
    on_failure_({client_->server(), Failure::Kind::kEnds,
                 absl::UnavailableError(absl::StrCat(client_->Name(), " is about to end"))});
    since_ = options_.now();  // it may have taken long
  }
  answered_ = since_;
}

void Heartbeat::CountSilence(absl::Duration taken, absl::Duration most) {
  silent_ = taken > most + kPause ? absl::ZeroDuration() : silent_ + std::min(taken, most);
  if (taken > most + kPauseOfPatience * Patience()) answered_ = since_;
}

bool Heartbeat::IsLost() const {
  if (silent_ >= options_.silence) return true;
  if (options_.answer_times == nullptr) return false;
  const absl::Duration patience = Patience();
  // If nobody answers, it is rather this process's own line that is cut.
  return since_ - answered_ >= patience && pulse_->StandsStill(since_, patience) &&
         pulse_->Answers(since_, std::max(patience / 2, 2 * interval_));
}

std::optional<Failure> Heartbeat::Beat() {
  const SteadyTime asked = options_.now();
  const absl::Duration timeout = Timeout();
  const absl::StatusOr<RenewResponse> answer = client_->Renew(timeout, pulse_->advances());
  const absl::Status& status = answer.status();
  if (!status.ok() && !IsSilence(status)) {
    return Failure{client_->server(), Failure::Kind::kUnleased, status};
  }
  const SteadyTime now = options_.now();
  const absl::Duration taken = now - std::exchange(since_, now);
  if (answer.ok()) {
    Count(*answer, now - asked);
    return std::nullopt;
  }
  CountSilence(taken, interval_ + timeout);
  if (!IsLost()) return std::nullopt;
  if (options_.answer_times != nullptr) {
    options_.answer_times->Lose(client_->address(), answered_);
  }
  return Failure{
      client_->server(), Failure::Kind::kSilent,
      absl::UnavailableError(absl::StrFormat("%s has not answered for %.2g s", client_->Name(),
                                             absl::ToDoubleSeconds(since_ - answered_)))};
}

void Heartbeat::Loop() {
  since_ = answered_ = options_.now();
  do {
    std::optional<Failure> failure = Beat();
    if (!failure) continue;
    if (!absl::IsCancelled(failure->status)) on_failure_(*std::move(failure));
    return;
  } while (!WaitForStop(SeemsLost() ? std::min(interval_, kShort) : interval_));
}

}  // namespace thinwire
