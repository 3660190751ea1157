// Conversion of a resolved experiment (config/resolve.h) to what the other folders need. Pure
// functions; if the experiment is not resolved, they refuse what they need and do not find.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "compress/feedback/spec.h"
#include "compress/spec.h"
#include "config/replicas_spec.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "models/base_weights.h"
#include "models/cost.h"
#include "models/lora.h"
#include "models/model.h"
#include "models/options.h"
#include "models/partition.h"
#include "nn/lr_schedule.h"
#include "nn/optimizer_spec.h"
#include "proto/experiment.pb.h"
#include "schedule/schedule.h"
#include "tensor/dtype.h"

namespace thinwire {

// Returns InvalidArgument for an unknown name, with the most similar and all known names.
absl::StatusOr<KnownDataset> KnownDatasetOf(const DataConfig& config);

// Returns whether a corpus of the data set may have been counted before data.end_of_text existed,
// so that one without this field has to keep the ids that it was counted with.
bool MayPredateEndOfText(const KnownDataset& known);
absl::StatusOr<DataOptions> DataOptionsFrom(const DataConfig& config);

// Returns the keys of an example's parts.
ExampleKeys KeysFrom(const ExampleFieldsConfig& config);

// Returns the format of conversations with the strings that are given in place of its own.
absl::StatusOr<ChatFormat> ChatFrom(const ChatConfig& config);

// Returns the size of a text or of sentences for a resolved experiment.
CorpusConfig CorpusFrom(const CorpusSize& size);

// Returns the description of the data without loading them. Errors of DescribeData, and for an
// unknown name.
absl::StatusOr<DatasetInfo> DatasetOf(const DataConfig& config);

// Return how many samples an epoch trains on, how many optimizer steps it takes, and how many the
// run takes.
absl::StatusOr<uint64_t> TrainingSamples(const Experiment& experiment);
absl::StatusOr<uint64_t> StepsPerEpoch(const Experiment& experiment);
absl::StatusOr<uint64_t> TrainingSteps(const Experiment& experiment);
// Returns the latter if an epoch takes so many steps.
inline uint64_t TrainingSteps(const Experiment& experiment, uint64_t steps_per_epoch) {
  return experiment.has_steps() ? experiment.steps() : experiment.epochs() * steps_per_epoch;
}

// Returns the model for the input shape of the experiment's data, without bottlenecks. Loads
// nothing.
absl::StatusOr<Model> ModelFrom(const Experiment& experiment);

// Returns the adapters of an experiment that has a section for them.
absl::StatusOr<LoraSpec> LoraFrom(const LoraConfig& config);

// Returns the format of the base's weights; fp32 without `base`.
absl::StatusOr<WeightFormat> BaseFrom(const Experiment& experiment);

// Returns the options of the model; nothing if the experiment writes its own layers.
absl::StatusOr<std::optional<ModelOptions>> ModelOptionsFrom(const Experiment& experiment);

// Return the experiment's model and data with the values of absent fields filled in: `hidden` with
// four times `width`, the size of a known text. So two that mean the same are equal.
absl::StatusOr<ModelConfig> ModelInFull(const Experiment& experiment);
DataConfig DataInFull(const DataConfig& config);

// A model, cut and placed.
struct Partition {
  Model model;            // with the layers of its bottlenecks
  std::vector<Cut> cuts;  // in model order
  Placement placement;    // of its segments on the experiment's stages
};
absl::StatusOr<Partition> PartitionFrom(const Experiment& experiment);

// Returns the share of the model's FLOPs that each stage has in training, at least a hundredth.
absl::StatusOr<std::vector<double>> WorkOfStages(const Experiment& experiment);

// Returns the bytes of parameters and of the optimizer that the carriers of a stage share, of the
// stage with most of them.
absl::StatusOr<double> LargestSharedState(const Experiment& experiment);

// Returns the names of the cuts as the pipeline has them, none where the model is not cut.
std::vector<std::string> GivenCuts(const PipelineConfig& pipeline);

// Returns the names of the segments, in model order: a segment is called as the cut that ends it,
// and the last one as the model's last block.
std::vector<std::string> SegmentNames(const Model& model, const std::vector<Cut>& cuts);

// Returns why the model cannot be evaluated without compression; empty if it can.
std::string WhyNotUncompressed(const Experiment& experiment);

// Opens the library of codec `plugin`, relative to the working directory; an error names its path.
absl::StatusOr<CodecSpec> CodecFrom(const DirectionConfig& config);
// Takes ef_mixed_a as ef for gradients and as none for activations.
absl::StatusOr<FeedbackSpec> FeedbackFrom(const FeedbackConfig& config, bool gradient);
absl::StatusOr<LevelSpec> LevelFrom(const LevelConfig& config);
absl::StatusOr<DirectionSpec> DirectionFrom(const DirectionConfig& config, bool gradient);
// Return one direction of one cut, the cut's own entry or else the general one, and the path of
// that entry.
std::string DirectionPath(const Experiment& experiment, const std::string& cut, bool gradient);
const DirectionConfig& DirectionOf(const Experiment& experiment, const std::string& cut,
                                   bool gradient);

absl::StatusOr<OuterSpec> OuterFrom(const OuterConfig& config);
// Returns how replicas share and average; one replica where the experiment has no section for them.
absl::StatusOr<ReplicasSpec> ReplicasFrom(const Experiment& experiment);
uint32_t ReplicasOf(const Experiment& experiment);  // their number
// Returns the number of the segment for which replicas have an entry of that name.
int SegmentOfEntry(const Experiment& experiment, const std::string& name);
// Returns whether replicas train by themselves between exchanges.
inline bool TrainsLocally(const Experiment& experiment) {
  return experiment.replicas().sync() == Name(ReplicaSync::kLocal);
}
// Returns the number of microbatches of all replicas.
inline uint32_t BatchMicrobatchesOf(const Experiment& experiment) {
  return ReplicasOf(experiment) * experiment.pipeline().microbatches();
}
// Returns the experiment of one replica by itself, with its samples of a batch.
Experiment OfOneReplica(const Experiment& experiment);

absl::StatusOr<ShuffleKind> ShuffleFrom(const Experiment& experiment);
absl::StatusOr<AugmentKind> AugmentFrom(const Experiment& experiment);
absl::StatusOr<OptimizerSpec> OptimizerFrom(const Experiment& experiment);
absl::StatusOr<LrScheduleSpec> LrScheduleFrom(const Experiment& experiment);
absl::StatusOr<ScheduleKind> ScheduleFrom(const Experiment& experiment);
// Returns the numbers of positions of each slice, in order, for a training sequence of `positions`;
// empty if it is not cut. InvalidArgument unless they add up to `positions`.
absl::StatusOr<std::vector<int64_t>> SlicesFrom(const Experiment& experiment, int64_t positions);
// Returns the number of units of a replica's part of a batch: its microbatches, or their slices
// (schedule/schedule.h).
uint32_t UnitsOf(const Experiment& experiment);
absl::StatusOr<Recompute> RecomputeFrom(const Experiment& experiment);
// Returns the element type of computation and of messages across cuts.
absl::StatusOr<DType> ComputeFrom(const Experiment& experiment);

struct Seeds {
  uint64_t init = 0, data = 0, codec = 0, dropout = 0;
};
// Returns all seeds. One that the experiment does not give is RandomKey(seed, "init"), "data",
// "codec" or "dropout".
Seeds SeedsFrom(const Experiment& experiment);

}  // namespace thinwire
