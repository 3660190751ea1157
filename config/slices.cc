#include "config/slices.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr char kPath[] = "pipeline.slices";

absl::Status Refuse(const std::string& what, const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("pipeline.schedule: terapipe with ", what, ", want ", wanted));
}

// Nothing, or what one of the layers does that a slice of a sequence cannot.
absl::Status CheckLayers(const std::vector<LayerSpec>& layers) {
  for (const LayerSpec& layer : layers) {
    if (layer.dropout > 0) {
      return Refuse(absl::StrCat("dropout ", layer.dropout, " (", layer.name, ")"), "none");
    }
    RETURN_IF_ERROR(CheckLayers(layer.body));
    RETURN_IF_ERROR(CheckLayers(layer.shortcut));
  }
  return absl::OkStatus();
}

// Blocks behind the first that read token ids are those of subspaces.
absl::Status CheckModel(const Model& model) {
  if (!model.tokens) return Refuse(absl::StrCat("model ", model.name), "one of sequences");
  for (const BlockSpec& block : model.blocks) {
    RETURN_IF_ERROR(CheckLayers(block.layers));
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

}  // namespace

absl::Status CheckSlices(const Experiment& experiment, const Partition& partition) {
  const PipelineConfig& pipeline = experiment.pipeline();
  ASSIGN_OR_RETURN(const ScheduleKind schedule, ScheduleFrom(experiment));
  const uint32_t slices = pipeline.slices();
  if (!Slices(schedule)) {
    if (!pipeline.has_slices()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(kPath, ": ", slices,
                                                   ", want none with schedule ", Name(schedule),
                                                   ", or schedule terapipe"));
  }
  RETURN_IF_ERROR(CheckModel(partition.model));
  const int64_t positions = partition.model.positions;
  if (!pipeline.has_slices() || slices < 1 || positions % slices != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kPath, ": ", pipeline.has_slices() ? absl::StrCat(slices) : "absent",
                     ", want a divisor of ", positions, ", the positions of a sequence"));
  }
  for (const Cut& cut : partition.cuts) RETURN_IF_ERROR(CheckFeedback(experiment, cut.name));
  return absl::OkStatus();
}

}  // namespace thinwire
