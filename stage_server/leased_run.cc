#include "stage_server/leased_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/secret.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr double kMaxSeconds = 600;

std::string Spelled(const Lease& lease) {
  return absl::StrCat("run ", lease.run(), " generation ", lease.generation());
}

absl::Status NotTheHolder() {
  return absl::FailedPreconditionError(
      "this server is leased, and this call does not have the lease's secret");
}

absl::Status Refused(const Lease& held, const Lease& refused) {
  if (held.run() == refused.run() && held.generation() == refused.generation()) {
    return absl::FailedPreconditionError(absl::StrCat("this server is a stage of ", Spelled(held),
                                                      " already; is it named by two addresses?"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("this server is leased to ", Spelled(held), ", refused ", Spelled(refused)));
}

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

absl::Status LeaseHolder::Acquire(const Lease& lease, const std::string& holder, double seconds,
                                  SteadyTime now) {
  const bool is_bounded = seconds > 0 && seconds <= kMaxSeconds;  // false for NaN, too
  if (lease.run().empty() || lease.generation() == 0 || !is_bounded) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lease wants a run, a generation from 1 and lease_seconds above 0 and at most ",
        kMaxSeconds, ", got ", Spelled(lease), " for ", seconds));
  }
  if (lease.secret().size() < kMinSecretBytes) {
    return absl::InvalidArgumentError(absl::StrCat("lease.secret: ", lease.secret().size(),
                                                   " bytes, want at least ", kMinSecretBytes));
  }
  if (IsHeld(now)) {
    const Lease& held = held_->lease;
    // The secret is compared first: who lacks it learns neither run nor generation.
    if (!SameSecret(held.secret(), lease.secret())) {
      return absl::UnavailableError("this server is leased to another run");
    }
    // The same run with a higher generation is a coordinator that came back. From now on the lower
    // generation is fenced off, should its coordinator still be alive.
    const bool takes_over = held.run() == lease.run() && lease.generation() > held.generation();
    if (!takes_over) return Refused(held, lease);
  }
  const absl::Duration duration = absl::Seconds(seconds);
  held_ = Held{lease, holder, duration, now + duration};
  return absl::OkStatus();
}

absl::Status LeaseHolder::Check(const Lease& lease, SteadyTime now) const {
  if (!IsHeld(now)) {
    return absl::FailedPreconditionError(
        absl::StrCat(Spelled(lease), " holds no lease of this server, or let it expire"));
  }
  const Lease& held = held_->lease;
  if (!SameSecret(held.secret(), lease.secret())) return NotTheHolder();
  // An older coordinator of the run knows the secret too; only its generation tells it apart.
  const bool is_it = held.run() == lease.run() && held.generation() == lease.generation();
  return is_it ? absl::OkStatus() : Refused(held, lease);
}

absl::Duration LeaseHolder::Left(SteadyTime now) const {
  return lasts_ ? absl::InfiniteDuration() : held_->expires - now;
}

std::string LeaseHolder::InForce(SteadyTime now) const {
  return IsHeld(now) ? absl::StrCat(Spelled(held_->lease), " (", held_->holder, ")") : "";
}

absl::Status LeaseHolder::Renew(const Lease& lease, SteadyTime now) {
  RETURN_IF_ERROR(Check(lease, now));
  held_->expires = now + held_->duration;
  return absl::OkStatus();
}

absl::Status LeaseHolder::Release(const Lease& lease, SteadyTime now) {
  RETURN_IF_ERROR(Check(lease, now));
  held_.reset();
  return absl::OkStatus();
}

std::optional<Lease> LeaseHolder::TakeExpired(SteadyTime now) {
  if (!held_ || IsHeld(now)) return std::nullopt;
  Lease expired = std::move(held_->lease);
  held_.reset();
  return expired;
}

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
                               const absl::Status& reason, const std::function<bool()>& keeps) {
  // Declared before the lock, so they go after it: the end of a run waits for its executor, and no
  // other call may wait for that.
  std::shared_ptr<StageRun> run, past;
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(change());
  run = std::move(run_);
  if (run != nullptr) {
    // Ends the waits of its calls: first those for neighbours, then those for silent clients.
    run->Stop(reason);
    run->transfers().End();
  }
  if (!keeps()) {
    past = std::move(past_);
  } else if (run != nullptr) {
    past = std::exchange(past_, run);
  }
  return absl::OkStatus();
}

absl::Status LeasedRun::Lend(const Lease& lease, const std::string& holder, double seconds) {
  if (leaves_) return absl::UnavailableError("this server is about to end");
  const SteadyTime now = SteadyTime::Now();
  const absl::Status status = lease_.Acquire(lease, holder, seconds, now);
  return absl::IsUnavailable(status) ? UntilFree(status, lease_.Left(now)) : status;
}

LeasedRun::Answer LeasedRun::Acquire(const Lease& lease, const std::string& holder, double seconds,
                                     bool keeps_state) {
  Answer answer;
  bool is_taken_over = false;  // from an earlier generation of the run, which alone can do that
  // The lease changes and the run goes under one lock: no call sees a new lease with an old run.
  const auto lend = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    answer.in_force = lease_.InForce(SteadyTime::Now());
    is_taken_over = lease_.IsHeld(SteadyTime::Now());
    const absl::Status leased = Lend(lease, holder, seconds);
    const std::string refused = leased.ok() ? "" : absl::StrCat(holder, "; ", answer.in_force);
    answer.is_news = std::exchange(last_refused_, refused) != refused;
    return leased;
  };
  answer.status = EndRun(lend, absl::CancelledError("another generation took the server over"),
                         [&] { return keeps_state && is_taken_over; });
  return answer;
}

std::shared_ptr<StageRun> LeasedRun::past() const {
  absl::MutexLock lock(&mutex_);
  return past_;
}

absl::StatusOr<std::shared_ptr<StageRun>> LeasedRun::TakePast(const Lease& lease) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(lease_.Check(lease, SteadyTime::Now()));
  return std::move(past_);
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

std::string LeasedRun::holder() const {
  absl::MutexLock lock(&mutex_);
  return lease_.run(SteadyTime::Now());
}

bool LeasedRun::IsLeased() const {
  absl::MutexLock lock(&mutex_);
  return lease_.IsHeld(SteadyTime::Now());
}

}  // namespace thinwire
