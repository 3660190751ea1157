// Who may use this server: one run at a time, proved by its lease's secret and fenced by
// generations, for as long as it keeps renewing. Pure: time is passed in. One thread at a time.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Who does not know the secret of the lease in force is refused in the same words whatever it asks:
// they tell neither run, generation nor holder.
class LeaseHolder {
 public:
  // From now on a lease lasts until it is released: for a server that ends with its coordinator
  // anyway, however long that one pauses.
  void set_lasts() { lasts_ = true; }

  // For `seconds` after now and after each renewal: more than 0, at most ten minutes.
  // InvalidArgument also for a secret under kMinSecretBytes. While another lease has not expired:
  // OK if `lease` is of the same run and secret and of a higher generation, FailedPrecondition if
  // only the secret is the same, and else Unavailable, as the server will be free again.
  absl::Status Acquire(const Lease& lease, const std::string& holder, double seconds,
                       SteadyTime now);
  // FailedPrecondition unless `lease` is the one in force and has not expired.
  absl::Status Check(const Lease& lease, SteadyTime now) const;
  absl::Status Renew(const Lease& lease, SteadyTime now);
  absl::Status Release(const Lease& lease, SteadyTime now);

  // How long a lease that is held lasts if nobody renews it; infinite where leases last.
  absl::Duration Left(SteadyTime now) const;
  bool IsHeld(SteadyTime now) const { return held_ && (lasts_ || now < held_->expires); }

  // "run one generation 1 (host a)", for this machine's own log; empty where nobody holds it.
  std::string InForce(SteadyTime now) const;

  // Once after each lease that ran out, that lease; the server is then free.
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
