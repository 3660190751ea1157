#include "coordinator/session/trial.h"

#include <set>
#include <utility>

#include "base/secret.h"
#include "base/status.h"
#include "config/kept.h"
#include "config/specs.h"
#include "coordinator/fleet/heartbeat.h"

namespace thinwire {
namespace {

constexpr double kLeaseSeconds = 15;

constexpr absl::Duration kLeaseCheck = absl::Seconds(5);

// Returns the error of a server that was leased. One that has lost the lease, which another call
// has taken over, says so by FailedPrecondition.
absl::Status OfItsOwn(const absl::Status& error, StageClient* server) {
  const bool may_pass = absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) ||
                        absl::IsCancelled(error) ||
                        (absl::IsFailedPrecondition(error) && !server->Renew(kLeaseCheck, 0).ok());
  return may_pass ? absl::UnavailableError(error.message())
                  : absl::FailedPreconditionError(error.message());
}

}  // namespace

Trial::Trial(const std::string& address, const Lease& lease, const Experiment* experiment,
             const Security& security)
    : experiment_(*experiment) {
  KeepLeast(&experiment_);  // what the others keep is not known here
  const int carriers = static_cast<int>(ReplicasOf(experiment_));
  const std::set<int> ends = {0, static_cast<int>(experiment_.pipeline().stages()) - 1};
  for (const int stage : ends) {
    const StagePlace place{0, stage, 0, carriers};
    as_ends_.push_back(std::make_unique<StageClient>(place, address, lease, security));
  }
}

void Trial::Cancel() {
  for (const auto& end : as_ends_) end->Cancel();
}

absl::Status Trial::Build(std::vector<ConfigureResponse>* ends) {
  for (const auto& end : as_ends_) {
    auto built = end->Configure(experiment_, /*threads=*/1, NewSecret(), {});
    if (!built.ok()) return OfItsOwn(built.status(), end.get());
    ends->push_back(*std::move(built));
  }
  return absl::OkStatus();
}

absl::StatusOr<TriedServer> Trial::Run() {
  StageClient* const server = as_ends_.front().get();
  auto answer = server->Acquire(kLeaseSeconds, absl::ZeroDuration(), /*keeps_state=*/false,
                                [](const std::string&) {});
  if (!answer.ok()) return absl::UnavailableError(answer.status().message());
  TriedServer tried;
  tried.build = std::move(*answer->mutable_build());
  Pulse pulse;
  absl::Status status;
  {
    const Heartbeat renewals(server, {}, &pulse, [this](const Failure&) { Cancel(); });
    status = Build(&tried.ends);
  }
  server->Release().IgnoreError();
  RETURN_IF_ERROR(status);
  return tried;
}

}  // namespace thinwire
