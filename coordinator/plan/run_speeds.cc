#include "coordinator/plan/run_speeds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/files/summary.h"
#include "models/cost.h"
#include "models/model.h"

namespace thinwire {
namespace {

// "resnet18 of 699,354 parameters for [1, 32, 32, 3]"
std::string Described(const Model& model) {
  return absl::StrCat(model.name, " of ", TrainableParameters(model), " parameters for inputs ",
                      model.input.ToString());
}

absl::Status CheckModel(const Model& ran, const Model& planned, const std::string& name) {
  const bool is_same = std::equal(ran.blocks.begin(), ran.blocks.end(), planned.blocks.begin(),
                                  planned.blocks.end(), [](const BlockSpec& a, const BlockSpec& b) {
                                    return a.name == b.name && a.in == b.in && a.out == b.out &&
                                           ForwardFlops(a) == ForwardFlops(b);
                                  });
  if (is_same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": trained ", Described(ran), ", want ",
                                                 Described(planned), ", which the experiment has"));
}

absl::Status CheckCompute(const Summary& summary, size_t stages, const std::string& name) {
  if (static_cast<size_t>(summary.compute_size()) != stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": its summary tells what ", summary.compute_size(), " stages computed, want ",
        stages, ": a run of this build that trained to an epoch's end"));
  }
  for (const ComputeRecord& record : summary.compute()) {
    for (const double seconds : {record.forward_seconds(), record.backward_seconds()}) {
      if (record.steps() > 0 && record.samples() > 0 && seconds > 0 && std::isfinite(seconds)) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(name, ": its summary has ", seconds,
                                                     " s of compute for ", record.steps(),
                                                     " steps of a stage, want more than 0"));
    }
  }
  return absl::OkStatus();
}

// What one stage took, shared out to its blocks.
void AddBlocks(const ComputeRecord& record, const Model& model, const std::vector<int>& of_stage,
               Recompute recompute, std::vector<BlockSeconds>* blocks) {
  double forward = 0, again = 0;  // FLOPs
  for (const int i : of_stage) {
    const BlockSpec& block = model.blocks[i];
    forward += ForwardFlops(block);
    if (recompute == Recompute::kBlocks && WorthRecomputing(block)) again += ForwardFlops(block);
  }
  const auto samples = static_cast<double>(record.samples());
  const auto steps = static_cast<double>(record.steps());
  // Of the backward passes only what they would do without.
  const double backward_share = forward > 0 ? 2 * forward / (2 * forward + again) : 1;
  for (const int i : of_stage) {
    // Blocks that count no FLOPs, as an embedding, take equal parts.
    const double share = forward > 0 ? ForwardFlops(model.blocks[i]) / forward
                                     : 1.0 / static_cast<double>(of_stage.size());
    (*blocks)[i] = {share * record.forward_seconds() / samples,
                    share * backward_share * record.backward_seconds() / samples,
                    share * record.optimizer_seconds() / steps};
  }
}

void AddCoding(const BoundaryRecord& boundary, bool gradient, Speeds* speeds) {
  const DirectionRecord& record = gradient ? boundary.gradients() : boundary.activations();
  const auto raw_bytes = static_cast<double>(record.raw_bytes());
  if (raw_bytes <= 0 || !(record.encode_seconds() > 0) || !(record.decode_seconds() > 0)) return;
  speeds->codings[{boundary.name(), gradient, record.parameters(), record.feedback()}] = {
      record.encode_seconds() / raw_bytes, record.decode_seconds() / raw_bytes,
      static_cast<double>(record.payload_bytes()) / raw_bytes};
}

}  // namespace

absl::StatusOr<Speeds> SpeedsOf(const Summary& summary, const Experiment& ran,
                                const Experiment& experiment, const std::string& name) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(ran));
  ASSIGN_OR_RETURN(const Partition planned, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const Recompute recompute, RecomputeFrom(ran));
  RETURN_IF_ERROR(CheckModel(partition.model, planned.model, name));
  const int stages = partition.placement.stages;
  RETURN_IF_ERROR(CheckCompute(summary, static_cast<size_t>(stages), name));
  Speeds speeds;
  speeds.blocks.resize(partition.model.blocks.size());
  for (int i = 0; i < stages; ++i) {
    AddBlocks(summary.compute(i), partition.model,
              StageBlocks(partition.model, partition.cuts, partition.placement, i), recompute,
              &speeds.blocks);
  }
  speeds.machine = MachineOf(summary);
  const ComputeRecord& first = summary.compute(0);
  speeds.samples_of_pass =
      static_cast<double>(first.samples()) / (static_cast<double>(first.steps()) * UnitsOf(ran));
  for (const BoundaryRecord& boundary : summary.boundaries()) {
    for (const bool gradient : {false, true}) AddCoding(boundary, gradient, &speeds);
  }
  speeds.compute_source =
      absl::StrFormat("as %s took it, %d stages in microbatches of %d samples", name, stages,
                      (ran.data().batch_size() + ran.pipeline().microbatches() - 1) /
                          ran.pipeline().microbatches());
  speeds.codec_source = absl::StrCat("those of ", name, " as it took them");
  return speeds;
}

std::string MachineOf(const Summary& summary) {
  return absl::StrCat(summary.device(), ", ", summary.provenance().cpu_model());
}

absl::StatusOr<Speeds> SpeedsOfRun(const std::string& dir, const Experiment& experiment) {
  const absl::StatusOr<Summary> summary = ReadSummary(dir);
  if (absl::IsNotFound(summary.status())) {
    return absl::NotFoundError(
        absl::StrCat(dir, ": no run is recorded here: ", summary.status().message()));
  }
  RETURN_IF_ERROR(summary.status());
  ASSIGN_OR_RETURN(const Experiment ran, LoadExperiment(dir + "/experiment.yaml", {}));
  return SpeedsOf(*summary, ran, experiment, dir);
}

}  // namespace thinwire
