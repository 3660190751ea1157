#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/sections.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "models/frozen.h"

namespace thinwire {

absl::Status ResolveMembership(const Partition& partition, Experiment* experiment) {
  MembershipConfig* const membership = experiment->mutable_membership();
  if (!membership->has_open()) membership->set_open(false);
  if (!membership->open()) {
    if (!membership->has_least()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("membership.least: ", membership->least(),
                                                   ", want membership.open: true with it"));
  }
  if (!membership->has_least()) membership->set_least(1);
  const auto refuse = [](const std::string& with, const char* wanted, const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat("membership.open: true with ", with, ", want ", wanted, ": ", why));
  };
  if (ReplicasOf(*experiment) == 1) {
    return refuse("one replica", "replicas.count: at least 2",
                  "what a machine alone has is lost with it");
  }
  if (TrainsLocally(*experiment)) {
    return refuse("replicas.sync: local", "step",
                  "within a round replicas have parameters of their own");
  }
  if (PartsOf(*experiment) > 1) {
    return refuse(absl::StrCat("tensor.parts: ", PartsOf(*experiment)), "1",
                  "no machine alone has a stage's parameters");
  }
  const int first_trained = FirstTrainedBlock(partition.model);
  for (const Cut& cut : partition.cuts) {
    if (first_trained <= cut.block) continue;
    return refuse(absl::StrCat("nothing that is trained before cut ", cut.name),
                  "cuts behind the first trained block",
                  "stages before it do not learn how far the others are");
  }
  return CheckValue(membership->least() >= 1 && membership->least() <= ReplicasOf(*experiment),
                    "membership.least", membership->least(),
                    absl::StrCat("1 to ", ReplicasOf(*experiment), ", the number of replicas"));
}

bool HasOpenMembership(const Experiment& experiment) { return experiment.membership().open(); }

}  // namespace thinwire
