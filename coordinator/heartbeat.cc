#include "coordinator/heartbeat.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// The stage may yet answer: nothing was heard from it.
bool IsSilence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

Heartbeat::Heartbeat(StageClient* client, const HeartbeatOptions& options, OnFailure on_failure)
    : client_(client), options_(options), on_failure_(std::move(on_failure)) {
  thread_ = std::thread([this] { Run(); });
}

Heartbeat::~Heartbeat() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  client_->CancelRenewals();
  thread_.join();
}

bool Heartbeat::WaitForStop(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&stop_), timeout);
}

void Heartbeat::Run() {
  absl::Time silent_at = absl::Now() + options_.silence;
  do {
    const absl::Status status = client_->Renew(silent_at);
    if (absl::IsCancelled(status)) return;
    if (status.ok()) {
      silent_at = absl::Now() + options_.silence;
    } else if (!IsSilence(status)) {
      return on_failure_({client_->stage(), Failure::Kind::kError, status});
    } else if (absl::Now() >= silent_at) {
      return on_failure_(
          {client_->stage(), Failure::Kind::kSilent,
           absl::UnavailableError(absl::StrCat(client_->Name(), " has not answered for ",
                                               absl::ToDoubleSeconds(options_.silence), " s"))});
    }
  } while (!WaitForStop(std::min(options_.interval, silent_at - absl::Now())));
}

}  // namespace thinwire
