#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/sections.h"
#include "models/cost.h"
#include "schedule/slicing.h"

namespace thinwire {
namespace {

// FLOPs in the fixed cost of a slice, which is a millisecond.
constexpr double kFlopsPerSlice = 100e6;
// Forward and backward pass, in forward passes.
constexpr double kPasses = 3;

absl::Status Refuse(const std::string& what, const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("pipeline.schedule: terapipe with ", what, ", want ", wanted));
}

// Returns OK, or an error for a layer that cannot work on a slice of a sequence.
absl::Status CheckLayers(const std::vector<LayerSpec>& layers) {
  for (const LayerSpec& layer : layers) {
    const double dropout = std::max(layer.dropout, layer.adapter_dropout);
    if (dropout > 0) {
      return Refuse(absl::StrCat("dropout ", dropout, " (", layer.name, ")"), "none");
    }
    RETURN_IF_ERROR(CheckLayers(layer.body));
    RETURN_IF_ERROR(CheckLayers(layer.shortcut));
  }
  return absl::OkStatus();
}

// Checks the model. Blocks after the first that read token ids belong to subspace bottlenecks.
absl::Status CheckModel(const Model& model) {
  if (!model.tokens) return Refuse(absl::StrCat("model ", model.name), "one of sequences");
  for (const BlockSpec& block : model.blocks) {
    RETURN_IF_ERROR(CheckLayers(block.layers));
    if (const LayerSpec* const whole = NeedsWholeSequences(block.layers)) {
      return Refuse(
          absl::StrCat("a layer ", Name(whole->kind), " of whole sequences in block ", block.name),
          "a causal model");
    }
    if (&block != &model.blocks.front() && ReadsIds(block.layers)) {
      return Refuse("a bottleneck that reads token ids", "one of another kind");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFeedback(const Experiment& experiment, const std::string& cut) {
  for (const bool gradient : {false, true}) {
    ASSIGN_OR_RETURN(const DirectionSpec does,
                     DirectionFrom(DirectionOf(experiment, cut, gradient), gradient));
    if (does.feedback.kind == FeedbackKind::kNone) continue;
    return absl::InvalidArgumentError(absl::StrCat(DirectionPath(experiment, cut, gradient),
                                                   ".feedback.kind: ", Name(does.feedback.kind),
                                                   ", want none with schedule terapipe"));
  }
  return absl::OkStatus();
}

// FLOPs of a sample's forward pass at the stage that has most.
struct StageFlops {
  double all = 0, attention = 0;
};
StageFlops MostFlops(const Partition& partition) {
  std::vector<StageFlops> stages(partition.placement.stages);
  const std::vector<SegmentCost> segments = SegmentCosts(partition.model, partition.cuts);
  for (size_t i = 0; i < segments.size(); ++i) {
    StageFlops& stage = stages[partition.placement.StageOf(static_cast<int>(i))];
    stage.all += segments[i].forward_flops;
    stage.attention += segments[i].attention_flops;
  }
  return *std::max_element(stages.begin(), stages.end(),
                           [](const StageFlops& a, const StageFlops& b) { return a.all < b.all; });
}

std::vector<int64_t> AutoSlices(const Experiment& experiment, const Partition& partition) {
  const uint32_t microbatches = experiment.pipeline().microbatches();
  const StageFlops flops = MostFlops(partition);
  const double samples =
      static_cast<double>(experiment.data().batch_size()) / BatchMicrobatchesOf(experiment);
  SequenceCost cost;  // in FLOPs
  cost.seconds = kPasses * samples * flops.all;
  cost.attention_share = flops.all > 0 ? flops.attention / flops.all : 0;
  cost.slice_seconds = kFlopsPerSlice;
  return BestSlices(partition.model.positions, partition.placement.stages,
                    static_cast<int>(microbatches), cost);
}

// Writes slices of equal length as their number, as a user would.
void SetSlices(const std::vector<int64_t>& lengths, PipelineConfig* pipeline) {
  pipeline->clear_slices();
  const auto is_first = [&](int64_t length) { return length == lengths.front(); };
  if (std::all_of(lengths.begin(), lengths.end(), is_first)) {
    pipeline->add_slices(absl::StrCat(lengths.size()));
    return;
  }
  for (const int64_t length : lengths) pipeline->add_slices(absl::StrCat(length));
}

}  // namespace

absl::Status ResolveSlices(const Partition& partition, Experiment* experiment) {
  PipelineConfig* pipeline = experiment->mutable_pipeline();
  ASSIGN_OR_RETURN(const ScheduleKind schedule, ScheduleFrom(*experiment));
  if (!Slices(schedule)) {
    if (pipeline->slices().empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("pipeline.slices: ", absl::StrJoin(pipeline->slices(), ", "),
                     ", want none with schedule ", Name(schedule), ", or schedule terapipe"));
  }
  RETURN_IF_ERROR(CheckModel(partition.model));
  for (const Cut& cut : partition.cuts) RETURN_IF_ERROR(CheckFeedback(*experiment, cut.name));
  const bool is_auto =
      pipeline->slices().empty() || (pipeline->slices_size() == 1 && pipeline->slices(0) == "auto");
  if (is_auto) SetSlices(AutoSlices(*experiment, partition), pipeline);
  return SlicesFrom(*experiment, partition.model.positions).status();
}

}  // namespace thinwire
