// Decides who may use this server. One run at a time holds it, for as long as it renews its lease.
// The lease's secret proves the run, and generations fence off its older coordinators. Time is
// passed in. Not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Every caller without the secret of the lease in force gets the same words, which tell neither
// run, generation nor holder.
class LeaseHolder {
 public:
  // Makes leases last until they are released. For a server that ends with its coordinator anyway,
  // however long the coordinator pauses.
  void set_lasts() { lasts_ = true; }

  // Grants `lease` until `seconds` after now, and after each renewal. InvalidArgument unless
  // `seconds` is above 0 and at most ten minutes, and for a secret shorter than kMinSecretBytes. If
  // another lease is in force, one of the same run and secret and a higher generation replaces it.
  // With only the secret equal the answer is FailedPrecondition. With another secret it is
  // Unavailable, as the server will be free again.
  absl::Status Acquire(const Lease& lease, const std::string& holder, double seconds,
                       SteadyTime now);
  // These return FailedPrecondition unless `lease` is in force and has not expired.
  absl::Status Check(const Lease& lease, SteadyTime now) const;
  absl::Status Renew(const Lease& lease, SteadyTime now);
  absl::Status Release(const Lease& lease, SteadyTime now);

  // Returns how long the held lease lasts if nobody renews it; infinite with set_lasts.
  absl::Duration Left(SteadyTime now) const;
  bool IsHeld(SteadyTime now) const { return held_ && (lasts_ || now < held_->expires); }

  // Returns "run one generation 1 (host a)" for this machine's own log; empty if nobody holds a
  // lease.
  std::string InForce(SteadyTime now) const;

  // Returns a lease that has run out, once; the server is then free.
  std::optional<Lease> TakeExpired(SteadyTime now);

 private:
  struct Held {
    Lease lease;
    std::string holder;
    absl::Duration duration;
    SteadyTime expires;
  };

  bool lasts_ = false;
  std::optional<Held> held_;
};

}  // namespace thinwire
