#include "stage_server/lease.h"

#include <utility>

#include "absl/strings/str_cat.h"
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

}  // namespace thinwire
