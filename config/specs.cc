#include "config/specs.h"

#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/feedback/plan.h"
#include "compress/plugin.h"
#include "compress/spec_parameters.h"
#include "config/checks.h"
#include "config/known_data.h"
#include "config/yaml_message.h"
#include "google/protobuf/descriptor.h"
#include "models/bottleneck.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using LayerConfigs = google::protobuf::RepeatedPtrField<LayerConfig>;

constexpr LayerKind kLayerKinds[] = {
    LayerKind::kConv2d,  LayerKind::kBatchNorm, LayerKind::kLayerNorm,     LayerKind::kReLU,
    LayerKind::kMaxPool, LayerKind::kMaxout,    LayerKind::kGlobalAvgPool, LayerKind::kFlatten,
    LayerKind::kLinear,  LayerKind::kResidual};

absl::StatusOr<LayerKind> KindOf(const LayerConfig& config) {
  std::vector<std::string> names;
  for (LayerKind kind : kLayerKinds) {
    if (config.kind() == Name(kind)) return kind;
    names.push_back(Name(kind));
  }
  return UnknownName("kind", "kind", config.kind(), names);
}

absl::StatusOr<std::vector<LayerSpec>> LayersFrom(const LayerConfigs& configs,
                                                  const std::string& block) {
  std::vector<LayerSpec> layers;
  for (const LayerConfig& config : configs) {
    LayerSpec layer;
    ASSIGN_OR_RETURN(layer.kind, KindOf(config));
    if (!config.name().empty()) layer.name = absl::StrCat(block, ".", config.name());
    layer.out_features = config.out();
    layer.kernel = config.kernel();
    if (config.has_stride()) layer.stride = config.stride();
    layer.padding = config.padding();
    layer.bias = config.bias();
    layer.group = config.group();
    ASSIGN_OR_RETURN(layer.body, LayersFrom(config.body(), block));
    ASSIGN_OR_RETURN(layer.shortcut, LayersFrom(config.shortcut(), block));
    layers.push_back(std::move(layer));
  }
  return layers;
}

absl::StatusOr<std::vector<BlockSpec>> BlocksFrom(const ModelConfig& config) {
  std::vector<BlockSpec> blocks;
  for (const BlockConfig& from : config.blocks()) {
    BlockSpec block;
    block.name = from.name();
    absl::StatusOr<std::vector<LayerSpec>> layers = LayersFrom(from.layers(), from.name());
    if (!layers.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", from.name(), ": ", layers.status().message()));
    }
    block.layers = *std::move(layers);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<Model> BuildModel(const ModelConfig& config, const Shape& input) {
  if (config.name() == "custom") {
    ASSIGN_OR_RETURN(std::vector<BlockSpec> blocks, BlocksFrom(config));
    return CustomModel(config.name(), std::move(blocks), input, config.classes());
  }
  ModelOptions options;
  options.name = config.name();
  options.width = config.width();
  options.classes = config.classes();
  options.input = input;
  return NamedModel(options);
}

std::vector<std::string> GivenCuts(const Experiment& experiment) {
  const auto& given = experiment.pipeline().cuts();
  std::vector<std::string> names(given.begin(), given.end());
  if (names == std::vector<std::string>{kEmptyList}) names.clear();
  return names;
}

// The general bottleneck, or the one that the cut has of its own.
absl::StatusOr<BottleneckSpec> BottleneckAt(const CompressionConfig& compression,
                                            const std::string& cut) {
  const auto found = compression.boundaries().find(cut);
  const bool own = found != compression.boundaries().end() && found->second.has_bottleneck();
  BottleneckSpec spec;
  if (!own && !compression.has_bottleneck()) return spec;
  const BottleneckConfig& config = own ? found->second.bottleneck() : compression.bottleneck();
  ASSIGN_OR_RETURN(spec.kind, BottleneckKindFromName(config.kind()));
  spec.width = config.width();
  spec.group = config.group();
  return spec;
}

absl::Status AddBottlenecks(const CompressionConfig& compression, Partition* partition) {
  std::vector<BottleneckSpec> specs;
  for (const Cut& cut : partition->cuts) {
    ASSIGN_OR_RETURN(const BottleneckSpec spec, BottleneckAt(compression, cut.name));
    specs.push_back(spec);
  }
  ASSIGN_OR_RETURN(partition->model,
                   WithBottlenecks(std::move(partition->model), partition->cuts, specs));
  return absl::OkStatus();
}

// Sets *to from the field of that name, if it is there.
template <typename T>
absl::Status Read(const DirectionConfig& config, const char* name, T* to) {
  const google::protobuf::FieldDescriptor* field =
      DirectionConfig::descriptor()->FindFieldByName(name);
  const google::protobuf::Reflection* reflection = config.GetReflection();
  if (!reflection->HasField(config, field)) return absl::OkStatus();
  if constexpr (std::is_enum_v<T>) {
    return FromName(reflection->GetString(config, field), to);
  } else if constexpr (std::is_same_v<T, bool>) {
    *to = reflection->GetBool(config, field);
  } else if constexpr (std::is_same_v<T, double>) {
    *to = reflection->GetDouble(config, field);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    *to = reflection->GetUInt64(config, field);
  } else {
    *to = reflection->GetUInt32(config, field);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Model> ModelFrom(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const KnownData data, FindKnownData(experiment.data().name()));
  absl::StatusOr<Model> model = BuildModel(experiment.model(), data.sample);
  if (!model.ok()) return WithPath("model", model.status());
  return model;
}

absl::StatusOr<Partition> PartitionFrom(const Experiment& experiment) {
  Partition partition;
  ASSIGN_OR_RETURN(partition.model, ModelFrom(experiment));
  absl::StatusOr<std::vector<Cut>> cuts = NamedCuts(partition.model, GivenCuts(experiment));
  if (!cuts.ok()) return WithPath("pipeline.cuts", cuts.status());
  partition.cuts = *std::move(cuts);
  RETURN_IF_ERROR(WithPath("compression", AddBottlenecks(experiment.compression(), &partition)));
  absl::StatusOr<std::vector<int>> starts = StageStarts(
      partition.model, partition.cuts, static_cast<int>(experiment.pipeline().stages()));
  if (!starts.ok()) return WithPath("pipeline.stages", starts.status());
  partition.stage_starts = *std::move(starts);
  return partition;
}

std::string WhyNotUncompressed(const Experiment& experiment) {
  for (const std::string& cut : GivenCuts(experiment)) {
    const absl::StatusOr<BottleneckSpec> spec = BottleneckAt(experiment.compression(), cut);
    if (!spec.ok() || spec->kind == BottleneckKind::kNone) continue;
    return absl::StrCat("cut ", cut, " has a bottleneck, which is part of the model and cannot be ",
                        "switched off");
  }
  return "";
}

const DirectionConfig& DirectionOf(const Experiment& experiment, const std::string& cut,
                                   bool gradient) {
  const CompressionConfig& compression = experiment.compression();
  const auto found = compression.boundaries().find(cut);
  if (found != compression.boundaries().end()) {
    const BoundaryConfig& own = found->second;
    if (gradient && own.has_gradients()) return own.gradients();
    if (!gradient && own.has_activations()) return own.activations();
  }
  return gradient ? compression.gradients() : compression.activations();
}

absl::StatusOr<CodecSpec> CodecFrom(const DirectionConfig& config) {
  CodecSpec spec;
  RETURN_IF_ERROR(FromName(config.codec(), &spec.kind));
  absl::Status status;
  VisitParameters(spec, [&](const char* name, auto& value, bool) {
    if (name == std::string_view("plugin")) return;  // a path there, a digest here
    status.Update(Read(config, name, &value));
  });
  RETURN_IF_ERROR(status);
  if (spec.kind == CodecKind::kPlugin) {
    ASSIGN_OR_RETURN(spec.plugin, LoadPlugin(config.plugin(), config.parameters()));
  }
  RETURN_IF_ERROR(CheckSpec(spec));
  return spec;
}

absl::StatusOr<FeedbackSpec> FeedbackFrom(const FeedbackConfig& config, bool gradient) {
  FeedbackSpec spec;
  if (config.kind() == "none") return spec;
  const bool is_ef = config.kind() == "ef_mixed_a" || config.kind() == "lazy";
  const std::string kind = is_ef ? "ef" : config.kind() == "aq_sgd" ? "ef21" : config.kind();
  RETURN_IF_ERROR(FromName(kind, &spec.kind));
  RETURN_IF_ERROR(FromName(config.key(), &spec.key));
  RETURN_IF_ERROR(FromName(config.store(), &spec.store));
  RETURN_IF_ERROR(FromName(config.on_full(), &spec.on_full));
  if (config.has_init()) RETURN_IF_ERROR(FromName(config.init(), &spec.init));
  if (config.has_decay()) spec.decay = config.decay();
  spec.limit_bytes = config.limit_bytes();
  spec.digest_every = config.digest_every();
  spec.dir = config.dir();
  RETURN_IF_ERROR(CheckFeedback(spec));
  return config.kind() == "ef_mixed_a" && !gradient ? FeedbackSpec() : spec;
}

absl::StatusOr<LevelSpec> LevelFrom(const LevelConfig& config) {
  LevelSpec spec;
  const bool by_error = config.has_target_error() || config.has_min() || config.has_max();
  if (!config.by_epoch().empty() && by_error) {
    return absl::InvalidArgumentError(
        "level: by_epoch and target_error, min or max, want one way of choosing");
  }
  if (by_error) {
    spec.kind = LevelKind::kByError;
    if (!config.has_target_error() || !config.has_min() || !config.has_max()) {
      return absl::InvalidArgumentError("level: want target_error, min and max together");
    }
    spec.target_error = config.target_error();
    spec.min = config.min();
    spec.max = config.max();
    return spec;
  }
  spec.kind = LevelKind::kByEpoch;
  for (const auto& [key, level] : config.by_epoch()) {
    uint32_t epoch = 0;
    if (!absl::SimpleAtoi(key, &epoch) || absl::StrCat(epoch) != key) {
      return absl::InvalidArgumentError(
          absl::StrCat("level.by_epoch: key ", key, ", want an epoch, from 1"));
    }
    spec.by_epoch[epoch] = level;
  }
  return spec;
}

absl::StatusOr<DirectionSpec> DirectionFrom(const DirectionConfig& config, bool gradient) {
  DirectionSpec spec;
  ASSIGN_OR_RETURN(spec.codec, CodecFrom(config));
  ASSIGN_OR_RETURN(spec.feedback, FeedbackFrom(config.feedback(), gradient));
  if (config.has_level()) {
    ASSIGN_OR_RETURN(spec.level, LevelFrom(config.level()));
  }
  RETURN_IF_ERROR(CheckLevel(spec.level, spec.codec));
  RETURN_IF_ERROR(CheckFeedbackOf(spec.feedback, Lowest(spec.codec, spec.level)));
  if (config.on_nonfinite() == "pass") spec.on_nonfinite = OnNonfinite::kPass;
  spec.epilogue_only = config.epilogue_only();
  return spec;
}

absl::StatusOr<DataOptions> DataFrom(const Experiment& experiment) {
  const DataConfig& config = experiment.data();
  RETURN_IF_ERROR(FindKnownData(config.name()).status());
  DataOptions options;
  options.name = config.name();
  options.dir = config.dir();
  options.limit = config.limit();
  options.test_limit = config.test_limit();
  options.verify = config.verify();
  return options;
}

absl::StatusOr<ShuffleKind> ShuffleFrom(const Experiment& experiment) {
  const std::string& name = experiment.data().shuffle();
  if (name == "samples") return ShuffleKind::kSamples;
  if (name == "batches") return ShuffleKind::kBatches;
  return UnknownName("data.shuffle", "shuffle", name, {"samples", "batches"});
}

absl::StatusOr<AugmentKind> AugmentFrom(const Experiment& experiment) {
  const std::string& name = experiment.data().augment();
  if (name == "none") return AugmentKind::kNone;
  if (name == "fixed") return AugmentKind::kFixed;
  if (name == "per_epoch") return AugmentKind::kPerEpoch;
  return UnknownName("data.augment", "augmentation", name, {"none", "fixed", "per_epoch"});
}

absl::StatusOr<OptimizerSpec> OptimizerFrom(const Experiment& experiment) {
  const OptimizerConfig& config = experiment.optimizer();
  RETURN_IF_ERROR(CheckName("optimizer.name", "optimizer", config.name(), {"sgd"}));
  OptimizerSpec spec;
  spec.momentum = config.momentum();
  spec.weight_decay = config.weight_decay();
  spec.nesterov = config.nesterov();
  return spec;
}

absl::StatusOr<LrScheduleSpec> LrScheduleFrom(const Experiment& experiment) {
  const LrScheduleConfig& config = experiment.lr_schedule();
  LrScheduleSpec spec;
  ASSIGN_OR_RETURN(spec.kind, LrScheduleFromName(config.name()));
  spec.lr = experiment.optimizer().lr();
  spec.min_lr = config.min_lr();
  spec.t_max = config.t_max();
  spec.step_size = config.step_size();
  spec.gamma = config.gamma();
  spec.warmup_steps = config.warmup_steps();
  return spec;
}

absl::StatusOr<ScheduleKind> ScheduleFrom(const Experiment& experiment) {
  return ScheduleFromName(experiment.pipeline().schedule());
}

absl::StatusOr<DType> ComputeFrom(const Experiment& experiment) {
  const std::string& name = experiment.precision();
  if (name == "fp32" || name == "tf32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  return UnknownName("precision", "precision", name, {"fp32", "tf32", "bf16"});
}

Seeds SeedsFrom(const Experiment& experiment) {
  const SeedsConfig& given = experiment.seeds();
  const uint64_t seed = experiment.seed();
  Seeds seeds;
  seeds.init = given.has_init() ? given.init() : RandomKey(seed, "init");
  seeds.data = given.has_data() ? given.data() : RandomKey(seed, "data");
  seeds.codec = given.has_codec() ? given.codec() : RandomKey(seed, "codec");
  return seeds;
}

}  // namespace thinwire
