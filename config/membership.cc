#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/boundaries.h"
#include "config/checks.h"
#include "config/sections.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

// Returns whether gradients cross every cut: by them a stage learns how far the others are.
bool HaveGradients(const Partition& partition) {
  const int first_trained = FirstTrainedBlock(partition.model);
  return std::none_of(partition.cuts.begin(), partition.cuts.end(),
                      [&](const Cut& cut) { return first_trained > cut.block; });
}

bool WritesCheckpoints(const CheckpointsConfig& config) {
  return config.every_steps() > 0 || config.every_epochs() > 0 || config.has_best();
}

}  // namespace

absl::Status ResolveMembership(Experiment* experiment) {
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
  if (PartsOf(*experiment) > 1) {
    return refuse(absl::StrCat("tensor.parts: ", PartsOf(*experiment)), "1",
                  "no machine alone has a stage's parameters");
  }
  if (!KeepsStates(*experiment) && !WritesCheckpoints(experiment->checkpoint())) {
    return refuse("checkpoint.every_epochs: 0", "checkpoints",
                  "machines alone remember messages, or train, so the others go on from the last "
                  "checkpoint");
  }
  return CheckValue(membership->least() >= 1 && membership->least() <= ReplicasOf(*experiment),
                    "membership.least", membership->least(),
                    absl::StrCat("1 to ", ReplicasOf(*experiment), ", the number of replicas"));
}

bool HasOpenMembership(const Experiment& experiment) { return experiment.membership().open(); }

bool KeepsStates(const Experiment& experiment) {
  if (!HasOpenMembership(experiment)) return false;
  if (TrainsLocally(experiment) || RemembersMessages(experiment)) return false;
  const absl::StatusOr<Partition> partition = PartitionFrom(experiment);
  return partition.ok() && HaveGradients(*partition);
}

}  // namespace thinwire
