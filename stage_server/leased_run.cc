#include "stage_server/leased_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/steady_time.h"

namespace thinwire {
namespace {

// The refusal of who asks for a server that is leased, with the time at which it will be free.
absl::Status UntilFree(const absl::Status& leased, absl::Duration left) {
  if (left == absl::InfiniteDuration()) return leased;
  return absl::UnavailableError(
      absl::StrCat(leased.message(), " until ",
                   absl::FormatTime("%H:%M:%S", absl::Now() + left, absl::UTCTimeZone()), " UTC, ",
                   absl::ToInt64Seconds(absl::Ceil(left, absl::Seconds(1))),
                   " s from now, unless it is renewed"));
}

}  // namespace

void LeasedRun::set_lasts() {
  absl::MutexLock lock(&mutex_);
  lease_.set_lasts();
}

void LeasedRun::AskToLeave() {
  absl::MutexLock lock(&mutex_);
  leaves_ = true;
}

void LeasedRun::Stop() {
  const auto stop = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Begin sees it, so that a run which is still being built does not come after the end.
    stopping_ = true;
    return absl::OkStatus();
  };
  (void)EndRun(stop, absl::CancelledError("the stage server shuts down"));
}

absl::Status LeasedRun::EndRun(const std::function<absl::Status()>& change,
                               const absl::Status& reason) {
  // Declared before the lock, so it goes after it: the end of a run waits for its executor, and no
  // other call may wait for that.
  std::shared_ptr<StageRun> run;
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(change());
  run = std::move(run_);
  if (run == nullptr) return absl::OkStatus();
  // Ends the waits of its calls: first those for neighbours, then those for silent clients.
  run->Stop(reason);
  run->transfers().End();
  return absl::OkStatus();
}

absl::Status LeasedRun::Lend(const Lease& lease, const std::string& holder, double seconds) {
  if (leaves_) return absl::UnavailableError("this server is about to end");
  const SteadyTime now = SteadyTime::Now();
  const absl::Status status = lease_.Acquire(lease, holder, seconds, now);
  return absl::IsUnavailable(status) ? UntilFree(status, lease_.Left(now)) : status;
}

LeasedRun::Answer LeasedRun::Acquire(const Lease& lease, const std::string& holder,
                                     double seconds) {
  Answer answer;
  // The lease changes and the run goes under one lock: no call sees a new lease with an old run.
  const auto lend = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    answer.in_force = lease_.InForce(SteadyTime::Now());
    const absl::Status leased = Lend(lease, holder, seconds);
    const std::string refused = leased.ok() ? "" : absl::StrCat(holder, "; ", answer.in_force);
    answer.is_news = std::exchange(last_refused_, refused) != refused;
    return leased;
  };
  answer.status = EndRun(lend, absl::CancelledError("another generation took the server over"));
  return answer;
}

absl::Status LeasedRun::Renew(const RenewRequest& request, RenewResponse* response) {
  absl::MutexLock lock(&mutex_);
  const SteadyTime now = SteadyTime::Now();
  RETURN_IF_ERROR(lease_.Renew(request.lease(), now));
  response->set_ends(leaves_);
  if (run_ == nullptr) return absl::OkStatus();
  run_->patience().RunAdvanced(request.advances(), now);
  response->set_advances(run_->patience().advances());
  return absl::OkStatus();
}

absl::StatusOr<LogSubject> LeasedRun::Release(const Lease& lease) {
  LogSubject subject;
  const auto release = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    subject = SubjectOf(lease);
    return lease_.Release(lease, SteadyTime::Now());
  };
  RETURN_IF_ERROR(EndRun(release, absl::CancelledError("the run was released")));
  return subject;
}

std::optional<LogSubject> LeasedRun::TakeExpired() {
  LogSubject subject;
  const auto take = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::optional<Lease> expired = lease_.TakeExpired(SteadyTime::Now());
    if (!expired) return absl::NotFoundError("no lease ran out");
    subject = SubjectOf(*expired);
    return absl::OkStatus();
  };
  const auto reason = absl::DeadlineExceededError("the coordinator stopped renewing its lease");
  if (!EndRun(take, reason).ok()) return std::nullopt;
  return subject;
}

absl::Status LeasedRun::CheckMayBuild(const Lease& lease) const {
  return stopping_ ? absl::CancelledError("the stage server shuts down")
                   : lease_.Check(lease, SteadyTime::Now());
}

absl::Status LeasedRun::Clear(const Lease& lease) {
  return EndRun([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return CheckMayBuild(lease); },
                absl::CancelledError("the stage is configured anew"));
}

absl::Status LeasedRun::Begin(const Lease& lease, std::shared_ptr<StageRun> run) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckMayBuild(lease));  // it may be another's by now
  run_ = std::move(run);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<StageRun>> LeasedRun::Of(const Lease& lease) const {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(lease_.Check(lease, SteadyTime::Now()));
  if (run_ == nullptr) return absl::FailedPreconditionError("the stage is not configured");
  return run_;
}

absl::Status LeasedRun::CheckMeasures(const Lease& lease) const {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(lease_.Check(lease, SteadyTime::Now()));
  if (run_ != nullptr) {
    return absl::FailedPreconditionError("the stage is configured: its links are not measured");
  }
  return stopping_ ? absl::CancelledError("the measurement was ended") : absl::OkStatus();
}

LogSubject LeasedRun::SubjectOf(const Lease& lease) const {
  return run_ == nullptr ? LogSubject{lease.run(), {}} : run_->subject();
}

std::shared_ptr<StageRun> LeasedRun::run() const {
  absl::MutexLock lock(&mutex_);
  return run_;
}

bool LeasedRun::IsLeased() const {
  absl::MutexLock lock(&mutex_);
  return lease_.IsHeld(SteadyTime::Now());
}

}  // namespace thinwire
