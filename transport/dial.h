// Dials the upstream end of a cut between processes; boundary_service.h accepts the downstream end.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "security/security.h"
#include "wire/link.h"

namespace thinwire {

// Dials `target` ("unix:/path", "host:port") on its own channel and waits until the peer has
// accepted the boundary. `stopped` is called every 100 ms; an error of it ends the wait.
// Unavailable, FailedPrecondition and PermissionDenied name peer and cut.
absl::StatusOr<std::unique_ptr<Link>> DialLink(
    const std::string& target, const LinkOptions& options, const Security& security,
    SteadyTime deadline,
    const std::function<absl::Status()>& stopped = [] { return absl::OkStatus(); });

}  // namespace thinwire
