// Who may use this server: one run at a time, fenced by generations, for as long as it keeps
// renewing. Pure: time is passed in. One thread at a time.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "proto/stage.pb.h"

namespace thinwire {

class LeaseHolder {
 public:
  // For `seconds` after now and after each renewal: more than 0, at most a day. FailedPrecondition
  // names the holder while another run's lease has not expired, or when the generation is not above
  // that of the same run's.
  absl::Status Acquire(const Lease& lease, const std::string& holder, double seconds,
                       SteadyTime now);
  // FailedPrecondition names the holder unless `lease` is the one in force and has not expired.
  absl::Status Check(const Lease& lease, SteadyTime now) const;
  absl::Status Renew(const Lease& lease, SteadyTime now);
  absl::Status Release(const Lease& lease, SteadyTime now);

  bool IsHeld(SteadyTime now) const { return held_ && now < held_->expires; }

  // Once after each lease that ran out, that lease; the server is then free.
  std::optional<Lease> TakeExpired(SteadyTime now);

 private:
  struct Held {
    Lease lease;
    std::string holder;
    absl::Duration duration;
    SteadyTime expires;
  };

  std::optional<Held> held_;
};

}  // namespace thinwire
