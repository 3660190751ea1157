// What the folders below are told to do, from a resolved experiment (config/resolve.h). Pure
// functions; where an experiment is not resolved they refuse what they need and do not find.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "compress/feedback/spec.h"
#include "compress/spec.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "models/cost.h"
#include "models/model.h"
#include "models/options.h"
#include "models/partition.h"
#include "nn/lr_schedule.h"
#include "nn/optimizer_spec.h"
#include "proto/experiment.pb.h"
#include "schedule/schedule.h"
#include "tensor/dtype.h"

namespace thinwire {

// InvalidArgument for an unknown name, with the nearest and all known ones.
absl::StatusOr<KnownDataset> KnownDatasetOf(const DataConfig& config);
absl::StatusOr<DataOptions> DataOptionsFrom(const DataConfig& config);

// What is known of the data, without loading any. Errors of DescribeData, and for an unknown name.
absl::StatusOr<DatasetInfo> DatasetOf(const DataConfig& config);

// Built for the input shape of the experiment's data, without bottlenecks; nothing is loaded.
absl::StatusOr<Model> ModelFrom(const Experiment& experiment);

// What makes up its model; nothing for one that the experiment writes itself.
absl::StatusOr<std::optional<ModelOptions>> ModelOptionsFrom(const Experiment& experiment);

// The experiment's model and its data with the values that absent fields stand for, so that two
// which say the same are equal: `hidden` beside four times `width`, the size of a known text.
absl::StatusOr<ModelConfig> ModelInFull(const Experiment& experiment);
DataConfig DataInFull(const DataConfig& config);

struct Partition {
  Model model;            // with the layers of its bottlenecks
  std::vector<Cut> cuts;  // in model order
  Placement placement;    // of its segments on the experiment's stages
};
absl::StatusOr<Partition> PartitionFrom(const Experiment& experiment);

// Why the model has no evaluation without compression; empty when it has.
std::string WhyNotUncompressed(const Experiment& experiment);

// Opens the library of codec `plugin`, from the working directory; an error names its path.
absl::StatusOr<CodecSpec> CodecFrom(const DirectionConfig& config);
// ef_mixed_a is ef for gradients and none for activations.
absl::StatusOr<FeedbackSpec> FeedbackFrom(const FeedbackConfig& config, bool gradient);
absl::StatusOr<LevelSpec> LevelFrom(const LevelConfig& config);
absl::StatusOr<DirectionSpec> DirectionFrom(const DirectionConfig& config, bool gradient);
// One direction of one cut: the boundary's own entry, or the general one; and the path of that
// entry.
std::string DirectionPath(const Experiment& experiment, const std::string& cut, bool gradient);
const DirectionConfig& DirectionOf(const Experiment& experiment, const std::string& cut,
                                   bool gradient);

absl::StatusOr<DataOptions> DataFrom(const Experiment& experiment);
absl::StatusOr<ShuffleKind> ShuffleFrom(const Experiment& experiment);
absl::StatusOr<AugmentKind> AugmentFrom(const Experiment& experiment);
absl::StatusOr<OptimizerSpec> OptimizerFrom(const Experiment& experiment);
absl::StatusOr<LrScheduleSpec> LrScheduleFrom(const Experiment& experiment);
absl::StatusOr<ScheduleKind> ScheduleFrom(const Experiment& experiment);
// The positions of each slice of a training sequence that has so many, in order; none where it is
// not cut. InvalidArgument unless they make the whole.
absl::StatusOr<std::vector<int64_t>> SlicesFrom(const Experiment& experiment, int64_t positions);
// Of a whole batch: its microbatches, or their slices (schedule/schedule.h).
uint32_t UnitsOf(const Experiment& experiment);
absl::StatusOr<Recompute> RecomputeFrom(const Experiment& experiment);
// The element type of compute and of what crosses cuts.
absl::StatusOr<DType> ComputeFrom(const Experiment& experiment);

struct Seeds {
  uint64_t init = 0, data = 0, codec = 0, dropout = 0;
};
// Seeds that the experiment does not give are RandomKey(seed, "init"), "data", "codec" and
// "dropout".
Seeds SeedsFrom(const Experiment& experiment);

}  // namespace thinwire
