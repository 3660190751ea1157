#include "coordinator/run/fitted_stages.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/status.h"
#include "config/kept.h"
#include "config/stash.h"
#include "coordinator/plan/memory_plan.h"

namespace thinwire {
namespace {

constexpr double kNoLimit = 1e18;  // bytes

// Returns the bytes of each stage, where it has least of its carriers.
std::vector<double> SharesOf(int stages, const std::vector<ServerMemory>& servers) {
  std::map<std::string, int> servers_on;
  for (const ServerMemory& server : servers) ++servers_on[server.host];
  std::vector<double> shares(stages, kNoLimit);
  for (const ServerMemory& server : servers) {
    const double share = static_cast<double>(server.bytes) / servers_on[server.host];
    shares[server.stage] = std::min(shares[server.stage], share);
  }
  return shares;
}

absl::StatusOr<bool> HasLossyStash(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const auto stash, StashFrom(experiment));
  return stash && !IsLossless(stash->codec);
}

}  // namespace

absl::StatusOr<Experiment> FitToServers(const Experiment& experiment, int carriers,
                                        const std::vector<ServerMemory>& servers,
                                        const std::function<void(const std::string&)>& tell) {
  const auto stages = static_cast<int>(experiment.pipeline().stages());
  ASSIGN_OR_RETURN(const auto limit, MemoryLimitFrom(experiment));
  if (!limit) return experiment;
  ASSIGN_OR_RETURN(const std::vector<int64_t> limits,
                   LimitsOf(experiment, SharesOf(stages, servers)));
  PlanAssumptions assumptions;
  assumptions.carriers = carriers;
  ASSIGN_OR_RETURN(const Speeds speeds, AssumedSpeeds(experiment));
  Experiment asked = experiment;
  ASSIGN_OR_RETURN(const bool is_lossy, HasLossyStash(experiment));
  const bool leaves_stash = !limit->bytes && is_lossy;
  // Which blocks a lossy stash has makes numbers, which do not depend on carriers.
  if (is_lossy) assumptions.carriers = 1;
  if (leaves_stash) asked.mutable_pipeline()->clear_stash();
  ASSIGN_OR_RETURN(FittedExperiment fitted, FitMemory(asked, assumptions, speeds, limits));
  if (leaves_stash) {
    *fitted.experiment.mutable_pipeline()->mutable_stash() = experiment.pipeline().stash();
  }
  if (tell) {
    const auto least = static_cast<uint64_t>(*std::min_element(limits.begin(), limits.end()));
    tell(absl::StrCat("memory of ", ByteSizeText(least), " a stage: ", KeepingText(fitted.memory)));
  }
  return fitted.experiment;
}

}  // namespace thinwire
