#include "coordinator/fleet/heartbeat.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// If a renewal and the wait before it take this much longer than they may, this process was paused.
constexpr absl::Duration kPause = absl::Seconds(2);

// Returns whether nothing was heard from the stage, which may still answer.
bool IsSilence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

Heartbeat::Heartbeat(StageClient* client, const HeartbeatOptions& options,
                     std::atomic<uint64_t>* advances, OnFailure on_failure)
    : client_(client), options_(options), advances_(advances), on_failure_(std::move(on_failure)) {
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

// A stage that is configured again counts from 0.
void Heartbeat::Count(uint64_t advances) {
  *advances_ += advances < last_advances_ ? advances : advances - last_advances_;
  last_advances_ = advances;
}

void Heartbeat::Loop() {
  absl::Duration left = options_.silence;
  SteadyTime since = options_.now();
  do {
    // At most half of the silence: if a pause uses up one renewal, there is time for another.
    const absl::Duration patience = std::min(left, options_.silence / 2);
    const absl::StatusOr<RenewResponse> answer = client_->Renew(patience, *advances_);
    const absl::Status& status = answer.status();
    if (absl::IsCancelled(status)) return;
    if (!status.ok() && !IsSilence(status)) {
      return on_failure_({client_->server(), Failure::Kind::kUnleased, status});
    }
    if (answer.ok()) Count(answer->advances());
    if (answer.ok() && answer->ends() && !std::exchange(told_end_, true)) {
      on_failure_({client_->server(), Failure::Kind::kEnds,
                   absl::UnavailableError(absl::StrCat(client_->Name(), " is about to end"))});
    }
    const SteadyTime now = options_.now();
    const absl::Duration taken = now - since;  // time of the renewal and of the wait before it
    since = now;
    if (status.ok() || taken > options_.interval + patience + kPause) {
      left = options_.silence;
    } else if ((left -= taken) <= absl::ZeroDuration()) {
      return on_failure_(
          {client_->server(), Failure::Kind::kSilent,
           absl::UnavailableError(absl::StrCat(client_->Name(), " has not answered for ",
                                               absl::ToDoubleSeconds(options_.silence), " s"))});
    }
  } while (!WaitForStop(std::min(options_.interval, left)));
}

}  // namespace thinwire
