#include "coordinator/run/restore.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/status.h"
#include "config/boundaries.h"
#include "config/experiment.h"
#include "config/local_paths.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "coordinator/checkpoint/base.h"
#include "coordinator/run/boundary_totals.h"
#include "coordinator/run/initial.h"
#include "coordinator/run/model_shares.h"
#include "models/pieces.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

bool IsGradient(const CheckpointFile& file) { return file.direction() == "gradient"; }

// Returns the stage that has this end of a cut. The sender of activations and the receiver of
// gradients are before the cut, the other two after it.
int StageOf(const Partition& partition, const CheckpointFile& file) {
  if (file.has_piece()) return partition.placement.StageOf(SegmentOfPiece(file.piece()));
  const bool stands_before = IsGradient(file) == (file.end() == "receiver");
  if (file.cut() == kTiedCut) {
    return stands_before ? 0 : partition.placement.stages - 1;
  }
  const auto cut = std::find_if(partition.cuts.begin(), partition.cuts.end(),
                                [&](const Cut& one) { return one.name == file.cut(); });
  const int before = static_cast<int>(cut - partition.cuts.begin());
  return partition.placement.StageOf(stands_before ? before : before + 1);
}

bool SameBytes(const DirectionConfig& a, const DirectionConfig& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Returns whether rows of state belong to the same samples. With the same microbatches they do.
// With others they do but for the stream's, and but for replicas, which may have other samples
// then.
bool SameRows(const Experiment& then, const Experiment& now, const DirectionConfig& direction) {
  return then.pipeline().microbatches() == now.pipeline().microbatches() ||
         (direction.feedback().key() != "stream" && ReplicasOf(now) == 1);
}

// Returns the entry for the contributions of a segment.
const DirectionConfig& ContributionsOf(const Experiment& experiment, int segment) {
  for (const auto& [name, own] : experiment.replicas().stages()) {
    const bool is_own = own.has_contributions() && SegmentOfEntry(experiment, name) == segment;
    if (is_own) return own.contributions();
  }
  return experiment.replicas().contributions();
}

// Returns why what a file remembers does not go on; empty if it does.
std::string WhyDropped(const Experiment& then, const Experiment& now, const CheckpointFile& file) {
  if (ReplicasOf(then) != ReplicasOf(now)) return "the number of replicas is another";
  const std::vector<std::string> cuts = CutNames(now);
  if (file.has_piece()) {
    if (CutNames(then) != cuts) return "the cuts are others, and with them the pieces";
    if (PartsOf(then) != PartsOf(now)) return "the parts are others, and with them the pieces";
    const int segment = SegmentOfPiece(file.piece());
    // A tied weight's copy, in the last segment, has the entries of the first one.
    const bool is_last = segment == static_cast<int>(cuts.size());
    const auto is_same = [&](int of) {
      return SameBytes(ContributionsOf(then, of), ContributionsOf(now, of));
    };
    return is_same(segment) && (!is_last || is_same(0)) ? "" : "its compression is another";
  }
  if (std::count(cuts.begin(), cuts.end(), file.cut()) == 0) return "the cut is no more";
  const DirectionConfig& direction = DirectionOf(now, file.cut(), IsGradient(file));
  if (!SameBytes(DirectionOf(then, file.cut(), IsGradient(file)), direction)) {
    return "its compression is another";
  }
  if (SameRows(then, now, direction)) return "";
  return "it remembers by places in a microbatch, which are others now";
}

// Returns why a file of tensors does not go on; empty if it does. Replicas that train locally have
// optimizers of their own.
std::string WhyTensorsDropped(const Experiment& then, const Experiment& now,
                              const CheckpointFile& file) {
  if (file.tensors() == kModelTensors) return "";
  if (TrainsLocally(then) != TrainsLocally(now)) return "replicas.sync is another";
  if (file.tensors() == kOuterMomentum) {
    return now.replicas().outer().momentum() > 0 ? "" : "replicas.outer.momentum is 0 now";
  }
  const bool has_place = !file.has_replica() || ReplicasOf(then) == ReplicasOf(now);
  return has_place ? "" : "the number of replicas is another";
}

// Returns "cut layer1, activations", or "replicas, contributions".
std::string Spelled(const std::string& cut, bool gradient) {
  if (cut == kReplicas) return "replicas, contributions";
  return absl::StrCat("cut ", cut, ", ", gradient ? "gradients" : "activations");
}

StatePart PartOf(const CheckpointFile& file) {
  StatePart part;
  part.set_tensors(file.tensors());
  part.set_cut(file.cut());
  part.set_gradient(IsGradient(file));
  part.set_sender(file.end() == "sender");
  if (file.has_replica()) part.set_replica(file.replica());
  if (file.has_piece()) part.set_piece(file.piece());
  if (!file.has_level()) return part;
  part.mutable_level()->set_level(file.level().level());
  part.mutable_level()->set_step(file.level().step());
  part.mutable_level()->set_error_sum(file.level().error_sum());
  part.mutable_level()->set_measured(file.level().measured());
  return part;
}

// Returns whether a file has tensors of that part of the state, whichever stage's.
bool IsOf(const StatePart& part, const CheckpointFile& file) {
  return file.tensors() == part.tensors() && file.has_replica() == part.has_replica() &&
         file.replica() == part.replica();
}

// Decides which parts of tensors go on. The model comes first, as each stage has listed it, and
// replicas begin with it.
void PlanTensors(const Experiment& then, const Experiment& now, const CheckpointManifest& manifest,
                 RestorePlan* plan) {
  std::set<std::string> told;
  for (const CheckpointFile& file : manifest.files()) {
    const bool is_planned = std::any_of(plan->tensors.begin(), plan->tensors.end(),
                                        [&](const StatePart& part) { return IsOf(part, file); });
    if (file.tensors().empty() || is_planned) continue;
    const std::string why = WhyTensorsDropped(then, now, file);
    if (why.empty()) {
      plan->tensors.push_back(PartOf(file));
    } else if (told.insert(file.tensors()).second) {
      plan->resets.push_back(
          absl::StrCat(file.tensors(), ": ", why, ", what was remembered there is dropped"));
    }
  }
}

// Opens the tensors of a part of the state, and deals them out.
absl::StatusOr<ModelShares> SharesOf(const Experiment& now, const FoundCheckpoint& checkpoint,
                                     const StatePart& part) {
  std::vector<std::string> names;
  for (const CheckpointFile& file : checkpoint.manifest.files()) {
    if (IsOf(part, file)) names.push_back(file.name());
  }
  const std::string& tensors = part.tensors();
  ASSIGN_OR_RETURN(ModelFolder folder, ModelFolder::OpenFiles(checkpoint.path, names));
  if (tensors == kReplicaModelTensors) return ModelShares::OfReplica(now, std::move(folder));
  if (tensors != kModelTensors) return ModelShares::OfRemembered(now, tensors, std::move(folder));
  if (!checkpoint.manifest.has_base()) return ModelShares::Of(now, std::move(folder));
  const CheckpointBase base = BaseNow(checkpoint.manifest.base(), now);
  if (base.at() == kAtStages) return ModelShares::BesideBase(now, base, std::move(folder));
  ASSIGN_OR_RETURN(folder, WithBase(std::move(folder), base));
  return ModelShares::Of(now, std::move(folder));
}

absl::Status RestoreTensors(const Experiment& now, const FoundCheckpoint& checkpoint,
                            const StatePart& part, Fleet* fleet) {
  const absl::StatusOr<ModelShares> shares = SharesOf(now, checkpoint, part);
  if (!shares.ok()) return Annotated(shares.status(), part.tensors());
  return shares->Restore(part, checkpoint.manifest.step(), static_cast<int>(ReplicasOf(now)),
                         fleet);
}

absl::Status RestoreEnd(const FoundCheckpoint& checkpoint, const CheckpointFile& file,
                        StageClient& stage) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(checkpoint.path + "/" + file.name()));
  return stage.Restore(
      PartOf(file), checkpoint.manifest.step(), [&](const StageClient::Sink& sink) -> absl::Status {
        for (size_t at = 0; at < bytes.size(); at += StageClient::kPieceBytes) {
          RETURN_IF_ERROR(sink(std::string_view(bytes).substr(at, StageClient::kPieceBytes)));
        }
        return absl::OkStatus();
      });
}

}  // namespace

CheckpointBase BaseNow(const CheckpointBase& then, const Experiment& now) {
  CheckpointBase base = then;
  if (!now.has_init()) return base;
  base.set_init(now.init());
  base.set_at(StagesReadInit(now) ? kAtStages : kAtCoordinator);
  return base;
}

absl::Status CheckBase(const Experiment& now, const FoundCheckpoint& checkpoint) {
  if (!checkpoint.manifest.has_base()) return absl::OkStatus();
  StatePart model;
  model.set_tensors(kModelTensors);
  const absl::Status status = SharesOf(now, checkpoint, model).status();
  if (status.ok()) return status;
  return absl::FailedPreconditionError(
      absl::StrCat(status.message(),
                   ": want the folder that the run began with (--set init=DIR for another place)"));
}

absl::StatusOr<Experiment> ExperimentOf(const FoundCheckpoint& checkpoint) {
  absl::StatusOr<Experiment> experiment =
      ParseResolved(checkpoint.manifest.experiment(), kManifestFile);
  if (experiment.ok()) return experiment;
  return absl::DataLossError(
      absl::StrCat(checkpoint.path, ": its experiment: ", experiment.status().message()));
}

absl::StatusOr<RestorePlan> PlanRestore(const Experiment& then, const Experiment& now,
                                        const CheckpointManifest& manifest) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(now));
  RestorePlan plan;
  plan.ends.resize(static_cast<size_t>(partition.placement.stages));
  const std::vector<Remembering> all = RememberingOf(now);
  if (ReplicasOf(then) != ReplicasOf(now)) {
    plan.resets.push_back(absl::StrCat("replicas.count: ", ReplicasOf(now), ", was ",
                                       ReplicasOf(then),
                                       ": the samples of a batch are divided otherwise"));
  }
  PlanTensors(then, now, manifest, &plan);
  std::set<std::pair<std::string, bool>> kept, told;
  for (const CheckpointFile& file : manifest.files()) {
    if (file.cut().empty()) continue;
    const std::pair<std::string, bool> direction(file.cut(), IsGradient(file));
    const std::string why = WhyDropped(then, now, file);
    if (why.empty()) {
      kept.insert(direction);
      plan.ends[static_cast<size_t>(StageOf(partition, file))].push_back(file);
    } else if (told.insert(direction).second) {
      plan.resets.push_back(absl::StrCat(Spelled(direction.first, direction.second), ": ", why,
                                         ", what was remembered there is dropped"));
    }
  }
  for (const Remembering& one : all) {
    const std::pair<std::string, bool> direction(one.cut, one.gradient);
    if (!HasMemory(one.direction) || kept.count(direction) > 0) continue;
    plan.resets.push_back(
        absl::StrCat(Spelled(one.cut, one.gradient), ": what it remembers begins anew",
                     told.count(direction) > 0 ? "" : ", the checkpoint has nothing of it"));
  }
  return plan;
}

absl::Status Restore(const Experiment& now, const FoundCheckpoint& checkpoint,
                     const RestorePlan& plan, Fleet* fleet) {
  const CheckpointBase base = BaseNow(checkpoint.manifest.base(), now);
  if (checkpoint.manifest.has_base() && base.at() == kAtStages) {
    RETURN_IF_ERROR(ReadBaseAtStages(now, base, fleet));
  }
  for (const StatePart& part : plan.tensors) {
    RETURN_IF_ERROR(RestoreTensors(now, checkpoint, part, fleet));
  }
  const int replicas = static_cast<int>(ReplicasOf(now));
  return fleet->OnAll([&](StageClient& stage) -> absl::Status {
    const CarrierGrid grid = fleet->pipelines().GridOf(stage.stage());
    const ReplicaRange carried = grid.CarriedBy(grid.RowOf(stage.carrier()), replicas);
    for (const CheckpointFile& file : plan.ends[static_cast<size_t>(stage.stage())]) {
      // What is remembered of contributions is for all who receive them, too.
      const bool is_for_all = !file.has_replica() || file.has_piece();
      if (!is_for_all && !carried.has(static_cast<int>(file.replica()))) continue;
      RETURN_IF_ERROR(RestoreEnd(checkpoint, file, stage));
    }
    return absl::OkStatus();
  });
}

}  // namespace thinwire
