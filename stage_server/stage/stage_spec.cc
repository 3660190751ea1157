#include "stage_server/stage/stage_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/specs.h"

namespace thinwire {
namespace {

CaptureSpec CaptureOf(const Experiment& experiment, const std::vector<Cut>& cuts) {
  const CaptureConfig& config = experiment.capture();
  CaptureSpec capture;
  capture.steps.insert(config.steps().begin(), config.steps().end());
  for (size_t i = 0; i < cuts.size(); ++i) {
    const bool is_named = std::count(config.cuts().begin(), config.cuts().end(), cuts[i].name) > 0;
    if (is_named) capture.cuts.insert(static_cast<uint32_t>(i));
  }
  for (const std::string& what : config.what()) {
    (what == "gradients" ? capture.gradients : capture.activations) = true;
  }
  return capture;
}

absl::Status AddDirections(const Experiment& experiment, const std::string& cut, StageSpec* spec) {
  ASSIGN_OR_RETURN(DirectionSpec activations,
                   DirectionFrom(DirectionOf(experiment, cut, /*gradient=*/false), false));
  ASSIGN_OR_RETURN(DirectionSpec gradients,
                   DirectionFrom(DirectionOf(experiment, cut, /*gradient=*/true), true));
  spec->activations.push_back(std::move(activations));
  spec->gradients.push_back(std::move(gradients));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StageSpec> StageSpecFrom(const Experiment& experiment, int stage) {
  StageSpec spec;
  ASSIGN_OR_RETURN(Partition partition, PartitionFrom(experiment));
  spec.model = std::move(partition.model);
  spec.cuts = std::move(partition.cuts);
  spec.placement = std::move(partition.placement);
  spec.stage = stage;
  if (stage < 0 || stage >= spec.stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", stage, ", want 0 to ", spec.stages() - 1));
  }
  ASSIGN_OR_RETURN(spec.schedule, ScheduleFrom(experiment));
  spec.microbatches = static_cast<int>(experiment.pipeline().microbatches());
  ASSIGN_OR_RETURN(spec.replicas, ReplicasFrom(experiment));
  ASSIGN_OR_RETURN(spec.slice_positions, SlicesFrom(experiment, spec.model.positions));
  spec.batch_size = experiment.data().batch_size();
  spec.patience =
      std::make_shared<Patience>(absl::Seconds(experiment.pipeline().deadline_seconds()));
  spec.tied = FindTiedWeight(spec.model);
  for (const Cut& cut : spec.cuts) RETURN_IF_ERROR(AddDirections(experiment, cut.name, &spec));
  if (spec.has_tied_cut()) RETURN_IF_ERROR(AddDirections(experiment, kTiedCut, &spec));
  spec.warmup_epochs = experiment.compression().warmup_epochs();
  spec.warmup_steps = experiment.compression().warmup_steps();
  spec.error_every = experiment.metrics().error_every();
  spec.capture = CaptureOf(experiment, spec.cuts);
  ASSIGN_OR_RETURN(spec.shuffle, ShuffleFrom(experiment));
  ASSIGN_OR_RETURN(spec.compute, ComputeFrom(experiment));
  ASSIGN_OR_RETURN(spec.recompute, RecomputeFrom(experiment));
  ASSIGN_OR_RETURN(spec.optimizer, OptimizerFrom(experiment));
  const Seeds seeds = SeedsFrom(experiment);
  spec.init_seed = seeds.init;
  spec.data_seed = seeds.data;
  spec.codec_seed = seeds.codec;
  spec.dropout_seed = seeds.dropout;
  return spec;
}

}  // namespace thinwire
