#include "config/specs.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/path.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/codecs/plugin.h"
#include "compress/feedback/plan.h"
#include "config/checks.h"
#include "config/codec_config.h"
#include "config/direction.h"
#include "config/fields.h"
#include "config/tensor_parts.h"
#include "config/yaml_message.h"
#include "models/bottleneck.h"
#include "models/cost.h"
#include "models/frozen.h"
#include "models/parts.h"
#include "models/sliced_positions.h"
#include "models/transformer_layers.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

constexpr double kLeastWork = 0.01;

// Returns the value of that name.
template <typename Enum>
absl::StatusOr<Enum> ValueOf(const std::string& name) {
  Enum value{};
  RETURN_IF_ERROR(FromName(name, &value));
  return value;
}

using LayerConfigs = google::protobuf::RepeatedPtrField<LayerConfig>;

absl::StatusOr<std::vector<LayerSpec>> LayersFrom(const LayerConfigs& configs,
                                                  const std::string& block) {
  std::vector<LayerSpec> layers;
  for (const LayerConfig& config : configs) {
    ASSIGN_OR_RETURN(const LayerKind kind, ValueOf<LayerKind>(config.kind()));
    LayerSpec layer = DefaultLayer(kind);
    if (!config.name().empty()) layer.name = absl::StrCat(block, ".", config.name());
    RETURN_IF_ERROR(ReadParameters(config, &layer));
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
    ASSIGN_OR_RETURN(block.layers, Annotated(LayersFrom(from.layers(), from.name()),
                                             absl::StrCat("block ", from.name())));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

absl::StatusOr<ModelOptions> OptionsFrom(const ModelConfig& config, const Shape& input) {
  ASSIGN_OR_RETURN(ModelOptions options, OptionsOf(config.name()));
  RETURN_IF_ERROR(ReadParameters(config, &options));
  RETURN_IF_ERROR(ReadField(config.rope_scaling(), "type", &options.rope_scaling.kind));
  RETURN_IF_ERROR(ReadParameters(config.rope_scaling(), &options.rope_scaling));
  options.window_layers = {config.window_layers().begin(), config.window_layers().end()};
  options.classes = config.classes();
  options.input = input;
  return options;
}

absl::StatusOr<Model> BuildModel(const ModelConfig& config, const Shape& input) {
  if (config.name() == kCustomModel) {
    ASSIGN_OR_RETURN(std::vector<BlockSpec> blocks, BlocksFrom(config));
    return CustomModel(config.name(), std::move(blocks), input, config.classes());
  }
  ASSIGN_OR_RETURN(const ModelOptions options, OptionsFrom(config, input));
  return NamedModel(options);
}

// Returns the general bottleneck, or the cut's own one.
absl::StatusOr<BottleneckSpec> BottleneckAt(const CompressionConfig& compression,
                                            const std::string& cut) {
  const BoundaryConfig& own = OwnOf(compression, cut);
  BottleneckSpec spec;
  if (!own.has_bottleneck() && !compression.has_bottleneck()) return spec;
  const BottleneckConfig& config =
      own.has_bottleneck() ? own.bottleneck() : compression.bottleneck();
  RETURN_IF_ERROR(FromName(config.kind(), &spec.kind));
  RETURN_IF_ERROR(ReadParameters(config, &spec));
  return spec;
}

// Reads the entries of single segments over the general ones.
absl::Status ReadSegments(const Experiment& experiment, ReplicasSpec* spec) {
  for (const auto& [name, own] : experiment.replicas().stages()) {
    ExchangedSpec does{spec->contributions, spec->average};
    if (own.has_contributions()) {
      ASSIGN_OR_RETURN(does.contributions, DirectionFrom(own.contributions(), /*gradient=*/true));
    }
    if (own.has_average()) {
      ASSIGN_OR_RETURN(does.average, DirectionFrom(own.average(), /*gradient=*/true));
    }
    spec->segments[SegmentOfEntry(experiment, name)] = std::move(does);
  }
  return absl::OkStatus();
}

// Checks that no frozen weight has to stay in the span of a basis.
absl::Status CheckFrozenWithin(const Model& model) {
  absl::Status status;
  for (const BlockSpec& block : model.blocks) {
    ForEachLayer(block.layers, [&](const LayerSpec& layer) {
      if (!layer.frozen || layer.within.empty()) return;
      status = absl::InvalidArgumentError(
          absl::StrCat("bottleneck: a subspace changes ", layer.name, " in block ", block.name,
                       ", which freeze or lora freezes: want another kind, or that block trained"));
    });
  }
  return status;
}

// Returns the model with what `lora` or `freeze` leave to train.
absl::StatusOr<Model> WithTrained(const Experiment& experiment, Model model) {
  if (experiment.has_lora()) {
    ASSIGN_OR_RETURN(const LoraSpec lora, LoraFrom(experiment.lora()));
    return Annotated(WithAdapters(std::move(model), lora), "lora");
  }
  const std::vector<std::string> frozen(experiment.freeze().begin(), experiment.freeze().end());
  return Annotated(WithFrozen(std::move(model), frozen), "freeze");
}

absl::Status AddBottlenecks(const CompressionConfig& compression, Partition* partition) {
  std::vector<BottleneckSpec> specs;
  for (const Cut& cut : partition->cuts) {
    ASSIGN_OR_RETURN(const BottleneckSpec spec, BottleneckAt(compression, cut.name));
    specs.push_back(spec);
  }
  ASSIGN_OR_RETURN(partition->model,
                   WithBottlenecks(std::move(partition->model), partition->cuts, specs));
  return CheckFrozenWithin(partition->model);
}

// Checks that a model of token ids has each of the data's, and does not see what it is to predict.
absl::Status CheckTokens(const Model& model, const DatasetInfo& data) {
  const LayerSpec& embedding = model.blocks.front().layers.front();
  if (embedding.vocabulary < data.vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("vocabulary is ", embedding.vocabulary,
                                                   ", want at least ", data.vocabulary,
                                                   ", the token ids of data ", data.name));
  }
  if (!model.is_language() || data.hides_tokens) return absl::OkStatus();
  for (const BlockSpec& block : model.blocks) {
    const LayerSpec* const whole = NeedsWholeSequences(block.layers);
    if (whole == nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a layer ", Name(whole->kind), " of whole sequences in block ", block.name,
                     " sees the tokens that it is to predict: data.objective is ",
                     Name(Objective::kNext), ", want ", Name(Objective::kMasked)));
  }
  return absl::OkStatus();
}

// Checks that the model takes the data's samples and makes of each what has labels.
absl::Status CheckSamples(const Model& model, const DatasetInfo& data) {
  if (!model.tokens && data.is_text) {
    return absl::InvalidArgumentError(absl::StrCat("the model takes no token ids, which data ",
                                                   data.name,
                                                   " is: want an embedding as the first layer"));
  }
  if (model.positions != data.labels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has logits for ", model.positions,
        model.positions == 1 ? " position" : " positions", " of a sample, but data ", data.name,
        " has ", data.labels, data.labels == 1 ? " label" : " labels", " for each"));
  }
  return data.is_text ? CheckTokens(model, data) : absl::OkStatus();
}

}  // namespace

bool MayPredateEndOfText(const KnownDataset& known) {
  return !known.has_documents && !known.has_ids();
}

absl::StatusOr<KnownDataset> KnownDatasetOf(const DataConfig& config) {
  std::vector<std::string> known;
  for (const KnownDataset& dataset : AllDatasets()) {
    if (dataset.name == config.name()) return dataset;
    known.push_back(dataset.name);
  }
  return UnknownName("data.name", "data", config.name(), known);
}

absl::StatusOr<DataOptions> DataOptionsFrom(const DataConfig& config) {
  ASSIGN_OR_RETURN(const KnownDataset known, KnownDatasetOf(config));
  DataOptions options = DefaultOptions(known);
  options.limit = config.limit();
  options.test_limit = config.test_limit();
  options.held_out = config.held_out();
  options.verify = config.verify();
  RETURN_IF_ERROR(Annotated(ReadParameters(config, &options), "data"));
  TextOptions& text = options.text;
  if (config.has_chat()) {
    ASSIGN_OR_RETURN(text.chat, Annotated(ChatFrom(config.chat()), "data.chat"));
  }
  text.keys = KeysFrom(config.fields());
  for (std::string* path : {&options.dir, &text.file, &text.train, &text.test, &text.vocabulary}) {
    *path = WithHome(*path);
  }
  const CorpusConfig& corpus = config.corpus();
  text.size = {corpus.vocabulary(),
               static_cast<int64_t>(corpus.train_tokens()),
               static_cast<int64_t>(corpus.test_tokens()),
               static_cast<int64_t>(corpus.train_samples()),
               static_cast<int64_t>(corpus.test_samples()),
               static_cast<int64_t>(corpus.classes())};
  return options;
}

ExampleKeys KeysFrom(const ExampleFieldsConfig& config) {
  ExampleKeys keys;
  if (config.has_text()) keys.text = config.text();
  if (config.has_prompt()) keys.prompt = config.prompt();
  if (config.has_completion()) keys.completion = config.completion();
  if (config.has_messages()) keys.messages = config.messages();
  return keys;
}

absl::StatusOr<ChatFormat> ChatFrom(const ChatConfig& config) {
  ChatKind kind = ChatKind::kOwn;
  if (config.has_kind()) RETURN_IF_ERROR(FromName(config.kind(), &kind));
  ChatFormat format = KnownChatFormat(kind);
  if (config.has_begin()) format.begin = config.begin();
  if (config.has_system()) format.system = config.system();
  if (config.has_user()) format.user = config.user();
  if (config.has_assistant()) format.assistant = config.assistant();
  if (config.has_end()) format.end = config.end();
  if (config.has_default_system()) format.default_system = config.default_system();
  if (config.has_trim()) format.trim = config.trim();
  return format;
}

CorpusConfig CorpusFrom(const CorpusSize& size) {
  CorpusConfig corpus;
  if (size.skipped_lines > 0) {
    corpus.set_skipped_lines(static_cast<uint64_t>(size.skipped_lines));
    corpus.set_first_skipped(size.first_skipped);
  }
  if (size.classes > 0) {
    corpus.set_classes(static_cast<uint32_t>(size.classes));
  } else {
    corpus.set_vocabulary(static_cast<uint32_t>(size.vocabulary));
  }
  if (size.train_samples > 0) {
    corpus.set_train_samples(static_cast<uint64_t>(size.train_samples));
    corpus.set_test_samples(static_cast<uint64_t>(size.test_samples));
    return corpus;
  }
  corpus.set_train_tokens(static_cast<uint64_t>(size.train_tokens));
  corpus.set_test_tokens(static_cast<uint64_t>(size.test_tokens));
  return corpus;
}

absl::StatusOr<DatasetInfo> DatasetOf(const DataConfig& config) {
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(config));
  return Annotated(DescribeData(options), "data");
}

absl::StatusOr<uint64_t> TrainingSamples(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  const uint64_t limit = experiment.data().limit(), all = data.train_samples;
  return limit > 0 ? std::min(limit, all) : all;
}

absl::StatusOr<uint64_t> StepsPerEpoch(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const uint64_t samples, TrainingSamples(experiment));
  return static_cast<uint64_t>(
      NumBatches(static_cast<int64_t>(samples), experiment.data().batch_size()));
}

absl::StatusOr<uint64_t> TrainingSteps(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const uint64_t an_epoch, StepsPerEpoch(experiment));
  return TrainingSteps(experiment, an_epoch);
}

absl::StatusOr<WeightFormat> BaseFrom(const Experiment& experiment) {
  WeightFormat format = WeightFormat::kFP32;
  if (!experiment.has_base()) return format;
  if (!experiment.base().has_weights()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "base.weights: is required, one of ", absl::StrJoin(NamesOf(AllOf<WeightFormat>()), ", ")));
  }
  RETURN_IF_ERROR(Annotated(FromName(experiment.base().weights(), &format), "base.weights"));
  return format;
}

absl::StatusOr<Model> ModelFrom(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  absl::StatusOr<Model> model = BuildModel(experiment.model(), data.sample);
  const bool is_custom = experiment.model().name() == kCustomModel;
  const char* const path = is_custom ? "model.blocks" : "model";
  if (!model.ok()) return Annotated(model.status(), path);
  RETURN_IF_ERROR(Annotated(CheckSamples(*model, data), path));
  ASSIGN_OR_RETURN(Model divided, DividedIntoParts(*std::move(model), PartsOf(experiment)));
  ASSIGN_OR_RETURN(const WeightFormat base, BaseFrom(experiment));
  ASSIGN_OR_RETURN(Model trained, WithTrained(experiment, std::move(divided)));
  return Annotated(WithBase(std::move(trained), base), "base");
}

absl::StatusOr<std::optional<ModelOptions>> ModelOptionsFrom(const Experiment& experiment) {
  if (experiment.model().name() == kCustomModel) return std::nullopt;
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  ASSIGN_OR_RETURN(ModelOptions options, OptionsFrom(experiment.model(), data.sample));
  return std::make_optional(std::move(options));
}

absl::StatusOr<ModelConfig> ModelInFull(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const std::optional<ModelOptions> options, ModelOptionsFrom(experiment));
  if (!options) return experiment.model();
  const ModelOptions completed = Completed(*options);
  ModelConfig model;
  model.set_name(experiment.model().name());
  model.set_classes(static_cast<uint32_t>(completed.classes));
  VisitParameters(completed, [&](const char* name, const auto& value, const auto&) {
    if constexpr (!std::is_class_v<std::decay_t<decltype(value)>>) WriteField(name, value, &model);
  });
  if (completed.rope_scaling.kind != RopeScalingKind::kNone) {
    *model.mutable_rope_scaling() = experiment.model().rope_scaling();
  }
  *model.mutable_window_layers() = experiment.model().window_layers();
  return model;
}

DataConfig DataInFull(const DataConfig& config) {
  DataConfig data = config;
  const absl::StatusOr<DataOptions> options = DataOptionsFrom(config);
  if (!options.ok()) return data;
  const CorpusSize size = KnownSize(*options);
  if (!size.is_known()) return data;
  *data.mutable_corpus() = CorpusFrom(size);
  return data;
}

absl::StatusOr<Partition> PartitionFrom(const Experiment& experiment) {
  Partition partition;
  ASSIGN_OR_RETURN(partition.model, ModelFrom(experiment));
  ASSIGN_OR_RETURN(
      partition.cuts,
      Annotated(NamedCuts(partition.model, GivenCuts(experiment.pipeline())), "pipeline.cuts"));
  RETURN_IF_ERROR(Annotated(AddBottlenecks(experiment.compression(), &partition), "compression"));
  ASSIGN_OR_RETURN(partition.model, WithBottlenecksOfSums(experiment, std::move(partition.model)));
  if (HasSlicedPositions(experiment)) {
    ASSIGN_OR_RETURN(partition.model, WithSlicedPositions(std::move(partition.model),
                                                          partition.cuts, PartsOf(experiment)));
  }
  const int stages = static_cast<int>(experiment.pipeline().stages());
  ASSIGN_OR_RETURN(const ScheduleKind schedule, ScheduleFrom(experiment));
  absl::StatusOr<Placement> placement =
      Interleaves(schedule) && stages > 1
          ? InterleavedPlacement(partition.cuts, stages)
          : BalancedPlacement(partition.model, partition.cuts, stages);
  ASSIGN_OR_RETURN(partition.placement, Annotated(std::move(placement), "pipeline.stages"));
  return partition;
}

absl::StatusOr<std::vector<double>> WorkOfStages(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  std::vector<double> work(partition.placement.stages);
  const std::vector<SegmentCost> segments = SegmentCosts(partition.model, partition.cuts);
  for (size_t i = 0; i < segments.size(); ++i) {
    work[partition.placement.StageOf(static_cast<int>(i))] +=
        segments[i].forward_flops + segments[i].backward_flops;
  }
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  for (double& one : work) one = std::max(all > 0 ? one / all : 0, kLeastWork);
  return work;
}

absl::StatusOr<double> LargestSharedState(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const OptimizerSpec optimizer, OptimizerFrom(experiment));
  const auto bytes_of = [&optimizer](int64_t elements, bool hidden) {
    return sizeof(float) * static_cast<double>(elements) *
           (1 + OptimizerBuffers(optimizer, hidden));
  };
  std::vector<double> bytes(partition.placement.stages);
  const std::vector<SegmentCost> segments = SegmentCosts(partition.model, partition.cuts);
  for (size_t i = 0; i < segments.size(); ++i) {
    const SegmentCost& segment = segments[i];
    bytes[partition.placement.StageOf(static_cast<int>(i))] +=
        bytes_of(segment.parameters - segment.hidden_parameters, /*hidden=*/false) +
        bytes_of(segment.hidden_parameters, /*hidden=*/true);
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

std::vector<std::string> GivenCuts(const PipelineConfig& pipeline) {
  std::vector<std::string> names(pipeline.cuts().begin(), pipeline.cuts().end());
  if (names == std::vector<std::string>{kEmptyList}) names.clear();
  return names;
}

std::vector<std::string> SegmentNames(const Model& model, const std::vector<Cut>& cuts) {
  std::vector<std::string> names;
  for (const Cut& cut : cuts) names.push_back(cut.name);
  names.push_back(model.blocks.back().name);
  return names;
}

std::string WhyNotUncompressed(const Experiment& experiment) {
  for (const std::string& cut : GivenCuts(experiment.pipeline())) {
    const absl::StatusOr<BottleneckSpec> spec = BottleneckAt(experiment.compression(), cut);
    if (!spec.ok() || spec->kind == BottleneckKind::kNone) continue;
    return absl::StrCat("cut ", cut, " has a bottleneck, which is part of the model and cannot be ",
                        "switched off");
  }
  const BottleneckConfig& of_sums = experiment.compression().sums().bottleneck();
  if (PartsOf(experiment) > 1 && of_sums.has_kind() &&
      of_sums.kind() != Name(BottleneckKind::kNone)) {
    return "sums have a bottleneck, which is part of the model and cannot be switched off";
  }
  return "";
}

std::string DirectionPath(const Experiment& experiment, const std::string& cut, bool gradient) {
  const bool has_own = HasDirection(OwnOf(experiment.compression(), cut), gradient);
  return absl::StrCat("compression.", has_own ? absl::StrCat("boundaries.", cut, ".") : "",
                      DirectionName(gradient));
}

const DirectionConfig& DirectionOf(const Experiment& experiment, const std::string& cut,
                                   bool gradient) {
  const BoundaryConfig& own = OwnOf(experiment.compression(), cut);
  return HasDirection(own, gradient) ? DirectionIn(own, gradient)
                                     : DirectionIn(experiment.compression(), gradient);
}

absl::StatusOr<CodecSpec> CodecFrom(const DirectionConfig& config) {
  CodecSpec spec;
  RETURN_IF_ERROR(ReadCodec(config, &spec));
  if (CodecRowOf(spec.kind).is_plugin) {
    ASSIGN_OR_RETURN(spec.plugin, LoadPlugin(WithHome(config.plugin()), config.parameters()));
  }
  RETURN_IF_ERROR(CheckSpec(spec));
  return spec;
}

absl::StatusOr<FeedbackSpec> FeedbackFrom(const FeedbackConfig& config, bool gradient) {
  ASSIGN_OR_RETURN(const FeedbackPreset preset, FindFeedbackPreset(config.kind()));
  FeedbackSpec spec = preset.spec;
  RETURN_IF_ERROR(ReadParameters(config, &spec));
  RETURN_IF_ERROR(CheckFeedback(spec));
  return preset.gradients_only && !gradient ? FeedbackSpec() : spec;
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
  RETURN_IF_ERROR(ReadField(config, "on_nonfinite", &spec.on_nonfinite));
  spec.epilogue_only = config.epilogue_only();
  return spec;
}

uint32_t ReplicasOf(const Experiment& experiment) {
  return experiment.has_replicas() ? experiment.replicas().count() : 1;
}

Experiment OfOneReplica(const Experiment& experiment) {
  const uint32_t replicas = ReplicasOf(experiment);
  Experiment one = experiment;
  one.clear_replicas();
  one.mutable_data()->set_batch_size((experiment.data().batch_size() + replicas - 1) / replicas);
  return one;
}

absl::StatusOr<OuterSpec> OuterFrom(const OuterConfig& config) {
  ASSIGN_OR_RETURN(const OuterKind kind, ValueOf<OuterKind>(config.name()));
  OuterSpec spec = DefaultOuter(kind);
  absl::Status status = ReadParameters(config, &spec);
  status.Update(CheckOuter(spec));
  if (status.ok()) return spec;
  return absl::InvalidArgumentError(absl::StrCat("replicas.outer.", status.message()));
}

int SegmentOfEntry(const Experiment& experiment, const std::string& name) {
  const std::vector<std::string> cuts = GivenCuts(experiment.pipeline());
  return static_cast<int>(std::find(cuts.begin(), cuts.end(), name) - cuts.begin());
}

absl::StatusOr<ReplicasSpec> ReplicasFrom(const Experiment& experiment) {
  ReplicasSpec spec;
  if (!experiment.has_replicas()) return spec;
  const ReplicasConfig& replicas = experiment.replicas();
  spec.count = static_cast<int>(replicas.count());
  spec.digest_every = replicas.digest_every();
  if (replicas.sync() == Name(ReplicaSync::kLocal)) {
    spec.sync = ReplicaSync::kLocal;
    spec.every = replicas.every();
    ASSIGN_OR_RETURN(spec.outer, OuterFrom(replicas.outer()));
    spec.fragments = static_cast<int>(replicas.fragments());
    spec.overlap = replicas.overlap();
    spec.mix = replicas.mix();
  }
  ASSIGN_OR_RETURN(spec.contributions, DirectionFrom(replicas.contributions(), /*gradient=*/true));
  if (replicas.exchange() == Name(ReplicaExchange::kGather)) {
    spec.exchange = ReplicaExchange::kGather;
  } else {
    ASSIGN_OR_RETURN(spec.average, DirectionFrom(replicas.average(), /*gradient=*/true));
  }
  RETURN_IF_ERROR(ReadSegments(experiment, &spec));
  return spec;
}

absl::StatusOr<ShuffleKind> ShuffleFrom(const Experiment& experiment) {
  return ValueOf<ShuffleKind>(experiment.data().shuffle());
}

absl::StatusOr<AugmentKind> AugmentFrom(const Experiment& experiment) {
  return ValueOf<AugmentKind>(experiment.data().augment());
}

absl::StatusOr<OptimizerSpec> OptimizerFrom(const Experiment& experiment) {
  const OptimizerConfig& config = experiment.optimizer();
  ASSIGN_OR_RETURN(const OptimizerKind kind, ValueOf<OptimizerKind>(config.name()));
  OptimizerSpec spec = DefaultOptimizer(kind);
  spec.lr = config.lr();
  absl::Status status = ReadParameters(config, &spec);
  status.Update(CheckOptimizer(spec));
  if (status.ok()) return spec;
  return absl::InvalidArgumentError(absl::StrCat("optimizer.", status.message()));
}

absl::StatusOr<LrScheduleSpec> LrScheduleFrom(const Experiment& experiment) {
  const LrScheduleConfig& config = experiment.lr_schedule();
  ASSIGN_OR_RETURN(const auto kind, ValueOf<LrScheduleSpec::Kind>(config.name()));
  LrScheduleSpec spec = DefaultLrSchedule(kind);
  const absl::Status status = ReadParameters(config, &spec);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("lr_schedule.", status.message()));
  }
  spec.lr = experiment.optimizer().lr();
  spec.warmup_steps = config.warmup_steps();
  const bool ends_with_run = experiment.has_steps() && !config.has_t_max();
  if (ends_with_run) spec.last_step = static_cast<int64_t>(experiment.steps());
  return spec;
}

absl::StatusOr<ScheduleKind> ScheduleFrom(const Experiment& experiment) {
  return ValueOf<ScheduleKind>(experiment.pipeline().schedule());
}

absl::StatusOr<std::vector<int64_t>> SlicesFrom(const Experiment& experiment, int64_t positions) {
  const auto& given = experiment.pipeline().slices();
  std::vector<int64_t> slices;
  bool are_valid = true;
  for (const std::string& text : given) {
    slices.push_back(0);
    are_valid = are_valid && absl::SimpleAtoi(text, &slices.back()) && slices.back() >= 1 &&
                slices.back() <= positions;
  }
  if (are_valid && slices.size() == 1) {
    const int64_t count = slices.front();
    if (positions % count == 0) return std::vector<int64_t>(count, positions / count);
    are_valid = false;
  }
  const int64_t sum = std::accumulate(slices.begin(), slices.end(), int64_t{0});
  if (slices.empty() || (are_valid && sum == positions)) return slices;
  return absl::InvalidArgumentError(absl::StrCat(
      "pipeline.slices: ", absl::StrJoin(given, ", "), ", want auto, a divisor of ", positions,
      ", the positions of a sequence, or those of each slice, ", positions, " in all"));
}

uint32_t UnitsOf(const Experiment& experiment) {
  const auto& slices = experiment.pipeline().slices();
  uint32_t count = static_cast<uint32_t>(slices.size());
  if (count <= 1 && (slices.empty() || !absl::SimpleAtoi(slices[0], &count))) count = 1;
  return experiment.pipeline().microbatches() * count;
}

absl::StatusOr<Recompute> RecomputeFrom(const Experiment& experiment) {
  return ValueOf<Recompute>(experiment.pipeline().recompute());
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
  seeds.dropout = given.has_dropout() ? given.dropout() : RandomKey(seed, "dropout");
  return seeds;
}

}  // namespace thinwire
