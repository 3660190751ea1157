#include "config/resolve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/enum_names.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/choices.h"
#include "config/codec_config.h"
#include "config/devices.h"
#include "config/direction.h"
#include "config/kept.h"
#include "config/local_paths.h"
#include "config/replicas.h"
#include "config/run_name.h"
#include "config/sections.h"
#include "config/smallest_message.h"
#include "config/specs.h"
#include "config/stash.h"
#include "config/swap.h"
#include "config/tensor_parts.h"
#include "config/yaml_message.h"
#include "models/frozen.h"
#include "models/options.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

constexpr char kAuto[] = "auto";

// Assumption of `cuts: auto`: a stage computes 100 GFLOP/s and has a link of 1 GB/s.
constexpr double kFlopsPerByte = 100;
// Number of cuts if neither they nor the stages are given.
constexpr int kAutoCuts = 3;

constexpr uint32_t kMaxClasses = 1 << 20;
constexpr uint64_t kMaxEpochs = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMaxThreads = 1024;
constexpr uint32_t kRecalibrationSamples = 2000;
constexpr double kMaxDeadlineSeconds = 86400;

absl::Status Required(bool given, const std::string& path) {
  if (given) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": is required"));
}

absl::Status ResolveLayers(const std::string& path,
                           google::protobuf::RepeatedPtrField<LayerConfig>* layers) {
  for (int i = 0; i < layers->size(); ++i) {
    LayerConfig* layer = layers->Mutable(i);
    const std::string at = absl::StrCat(path, "[", i, "]");
    RETURN_IF_ERROR(ResolveChoice(at, layer));
    if (layer->kind() == Name(LayerKind::kMaxPool) && !layer->has_stride())
      layer->set_stride(layer->kernel());
    RETURN_IF_ERROR(ResolveLayers(at + ".body", layer->mutable_body()));
    RETURN_IF_ERROR(ResolveLayers(at + ".shortcut", layer->mutable_shortcut()));
  }
  return absl::OkStatus();
}

absl::Status CheckClasses(const DataConfig& data, const DatasetInfo& known, uint32_t classes) {
  if (known.score_unit > 0) {
    return CheckValue(
        classes == 1, "model.classes", classes,
        absl::StrCat("1, the score that data ", data.name(), " has with task ", data.task()));
  }
  return CheckValue(classes >= known.classes && classes <= kMaxClasses, "model.classes", classes,
                    absl::StrCat(known.classes, ", which data ", data.name(), " has, or more"));
}

absl::Status ResolveModel(const DataConfig& data, ModelConfig* model) {
  RETURN_IF_ERROR(ResolveChoice("model", model));
  if (model->has_rope_scaling()) {
    RETURN_IF_ERROR(ResolveChoice("model.rope_scaling", model->mutable_rope_scaling()));
  }
  ASSIGN_OR_RETURN(const DatasetInfo known, DatasetOf(data));
  if (!model->has_classes()) model->set_classes(static_cast<uint32_t>(known.classes));
  RETURN_IF_ERROR(CheckClasses(data, known, model->classes()));
  const bool takes_vocabulary =
      model->name() == "bert" && known.is_text && model->head() == Name(BertHead::kClasses);
  if (takes_vocabulary && !model->has_vocabulary()) {
    model->set_vocabulary(static_cast<uint32_t>(known.vocabulary));
  }
  if (model->has_width()) {
    RETURN_IF_ERROR(CheckValue(model->width() >= 1, "model.width", model->width(), "at least 1"));
  }
  for (int i = 0; i < model->blocks_size(); ++i) {
    const std::string path = absl::StrCat("model.blocks[", i, "]");
    BlockConfig* block = model->mutable_blocks(i);
    RETURN_IF_ERROR(Required(block->has_name(), path + ".name"));
    if (block->name() == kAuto || block->name() == kEmptyList) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ".name: \"", block->name(), "\" has a meaning of its own in pipeline.cuts"));
    }
    RETURN_IF_ERROR(ResolveLayers(path + ".layers", block->mutable_layers()));
  }
  return absl::OkStatus();
}

absl::Status CheckPipeline(const Experiment& e) {
  const PipelineConfig& pipeline = e.pipeline();
  RETURN_IF_ERROR(
      CheckValue(pipeline.microbatches() >= 1 && pipeline.microbatches() <= e.data().batch_size(),
                 "pipeline.microbatches", pipeline.microbatches(),
                 absl::StrCat("1 to ", e.data().batch_size(), ", the batch size")));
  RETURN_IF_ERROR(CheckName("pipeline.schedule", "schedule", pipeline.schedule(),
                            NamesOf(AllOf<ScheduleKind>())));
  RETURN_IF_ERROR(
      CheckName("pipeline.transport", "transport", pipeline.transport(), {"unix", "tcp"}));
  RETURN_IF_ERROR(CheckName("pipeline.recompute", "recompute", pipeline.recompute(),
                            NamesOf(AllOf<Recompute>())));
  RETURN_IF_ERROR(CheckSwap(e));
  const double deadline = pipeline.deadline_seconds();
  RETURN_IF_ERROR(CheckValue(deadline > 0 && deadline <= kMaxDeadlineSeconds,
                             "pipeline.deadline_seconds", deadline,
                             absl::StrCat("more than 0 and at most ", kMaxDeadlineSeconds)));
  uint64_t threads = 0;
  if (pipeline.threads() == kAuto ||
      (absl::SimpleAtoi(pipeline.threads(), &threads) && threads >= 1 && threads <= kMaxThreads)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("pipeline.threads: ", pipeline.threads(), ", want auto or 1 to ", kMaxThreads));
}

bool TakesTurns(const PipelineConfig& pipeline) {
  ScheduleKind schedule{};
  return FromName(pipeline.schedule(), &schedule).ok() && Interleaves(schedule);
}

// Returns how many cuts `auto` makes: enough for a segment per stage, or for two if stages take
// turns on them. Without a number of stages it is kAutoCuts, if the model has that many.
int NumAutoCuts(const PipelineConfig& pipeline, const Model& model) {
  if (pipeline.has_stages()) {
    const int stages = static_cast<int>(pipeline.stages());
    return (TakesTurns(pipeline) && stages > 1 ? 2 * stages : stages) - 1;
  }
  return std::min(kAutoCuts, static_cast<int>(model.blocks.size()) - 1);
}

absl::Status ResolveCuts(Experiment* e) {
  PipelineConfig* pipeline = e->mutable_pipeline();
  if (pipeline->has_stages()) {
    RETURN_IF_ERROR(CheckValue(pipeline->stages() >= 1 && pipeline->stages() <= (1u << 16),
                               "pipeline.stages", pipeline->stages(), "1 to cuts + 1"));
  } else if (TakesTurns(*pipeline)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pipeline.stages: absent, want how many stages take turns on the segments, as ",
        pipeline->schedule(), " has it"));
  }
  const bool is_auto =
      pipeline->cuts().empty() || (pipeline->cuts_size() == 1 && pipeline->cuts(0) == kAuto);
  if (is_auto) {
    ASSIGN_OR_RETURN(const Model model, ModelFrom(*e));
    const int count = NumAutoCuts(*pipeline, model);
    pipeline->clear_cuts();
    if (count == 0) {
      pipeline->add_cuts(kEmptyList);
    } else {
      ASSIGN_OR_RETURN(const std::vector<Cut> cuts,
                       Annotated(BalancedCuts(model, count, kFlopsPerByte), "pipeline.cuts: auto"));
      for (const Cut& cut : cuts) pipeline->add_cuts(cut.name);
    }
  }
  const auto segments = static_cast<uint32_t>(GivenCuts(*pipeline).size()) + 1;
  if (!pipeline->has_stages()) pipeline->set_stages(segments);
  return absl::OkStatus();
}

// Resolves one direction of all cuts, or of the cut that `path` names.
absl::Status ResolveCodecs(const std::string& path, bool tokens, bool gradient,
                           DirectionConfig* direction) {
  if (tokens) FillScopeOfTokens(direction);
  if (gradient) FillRoundingOfGradients(direction);
  return ResolveDirection(path, gradient, direction);
}

absl::Status ResolveGeneral(bool tokens, CompressionConfig* compression) {
  for (const bool gradient : {false, true}) {
    RETURN_IF_ERROR(ResolveCodecs(absl::StrCat("compression.", DirectionName(gradient)), tokens,
                                  gradient, MutableDirectionIn(gradient, compression)));
  }
  if (!compression->has_bottleneck()) return absl::OkStatus();
  return ResolveChoice("compression.bottleneck", compression->mutable_bottleneck());
}

// Resolves a cut's own entries, completed by the general ones.
absl::Status ResolveOwn(const std::string& path, bool tokens, const CompressionConfig& general,
                        BoundaryConfig* own) {
  for (const bool gradient : {false, true}) {
    if (!HasDirection(*own, gradient)) continue;
    DirectionConfig* direction = MutableDirectionIn(gradient, own);
    *direction = Overlaid(DirectionIn(general, gradient), *direction);
    RETURN_IF_ERROR(ResolveCodecs(absl::StrCat(path, ".", DirectionName(gradient)), tokens,
                                  gradient, direction));
  }
  if (!own->has_bottleneck()) return absl::OkStatus();
  *own->mutable_bottleneck() = Overlaid(general.bottleneck(), own->bottleneck());
  return ResolveChoice(path + ".bottleneck", own->mutable_bottleneck());
}

// Resolves both directions of sums over parts, where there are some or entries for them.
absl::Status ResolveDirectionsOfSums(const Experiment& e, bool tokens,
                                     CompressionConfig* compression) {
  if (PartsOf(e) == 1 && !compression->has_sums()) return absl::OkStatus();
  for (const bool gradient : {false, true}) {
    RETURN_IF_ERROR(ResolveCodecs(absl::StrCat("compression.sums.", DirectionName(gradient)),
                                  tokens, gradient,
                                  MutableDirectionIn(gradient, compression->mutable_sums())));
  }
  SumsConfig* const sums = compression->mutable_sums();
  if (!sums->has_bottleneck()) return absl::OkStatus();
  return ResolveChoice("compression.sums.bottleneck", sums->mutable_bottleneck());
}

// Refuses a codec of gradients that nobody sends, as nothing before the cut is trained.
absl::Status CheckNoGradients(const std::string& path, const DirectionConfig& gradients) {
  const std::string& codec = gradients.codec();
  if (codec.empty() || codec == Name(CodecSpec().kind)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ".gradients.codec: ", codec, ", want ", Name(CodecSpec().kind),
                   ": nothing before it is trained, so that no gradient crosses"));
}

// Gives each cut that gradients do not cross an entry that says so. The rest of `compression` must
// be resolved.
absl::Status ResolveWithoutGradients(const Partition& partition, CompressionConfig* compression) {
  const std::vector<Cut>& cuts = partition.cuts;
  for (const Cut& cut : cuts) {
    if (HasGradients(partition.model, cut)) continue;
    const std::string path = absl::StrCat("compression.boundaries.", cut.name);
    BoundaryConfig& own = (*compression->mutable_boundaries())[cut.name];
    RETURN_IF_ERROR(CheckNoGradients(path, own.gradients()));
    own.clear_gradients();
    RETURN_IF_ERROR(
        ResolveDirection(path + ".gradients", /*gradient=*/true, own.mutable_gradients()));
  }
  const bool has_none = !cuts.empty() && !HasGradients(partition.model, cuts.back());
  return has_none ? CheckNoGradients("compression", compression->gradients()) : absl::OkStatus();
}

absl::Status ResolveCompression(const Experiment& e, CompressionConfig* compression) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(e));
  RETURN_IF_ERROR(ResolveGeneral(model.tokens, compression));
  RETURN_IF_ERROR(ResolveDirectionsOfSums(e, model.tokens, compression));
  RETURN_IF_ERROR(CheckValue(compression->warmup_epochs() <= e.epochs(),
                             "compression.warmup_epochs", compression->warmup_epochs(),
                             absl::StrCat("0 to ", e.epochs(), ", the epochs")));
  const std::vector<std::string> cuts = GivenCuts(e.pipeline());
  ASSIGN_OR_RETURN(const bool has_tied_cut, HasTiedCut(e, cuts));
  if (has_tied_cut) RETURN_IF_ERROR(ResolveTied(compression));
  for (auto& [cut, own] : *compression->mutable_boundaries()) {
    if (has_tied_cut && cut == kTiedCut) continue;
    const std::string path = absl::StrCat("compression.boundaries.", cut);
    if (cuts.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": the model is not cut"));
    }
    RETURN_IF_ERROR(CheckName(path, "cut", cut, cuts));
    RETURN_IF_ERROR(ResolveOwn(path, model.tokens, *compression, &own));
  }
  for (const std::string& cut : cuts) RETURN_IF_ERROR(CheckCompressionAt(e, cut));
  if (has_tied_cut) RETURN_IF_ERROR(CheckCompressionAt(e, kTiedCut));
  return absl::OkStatus();
}

absl::Status ResolveOptimizer(Experiment* e) {
  OptimizerConfig* optimizer = e->mutable_optimizer();
  RETURN_IF_ERROR(ResolveChoice("optimizer", optimizer));
  RETURN_IF_ERROR(Required(optimizer->has_lr(), "optimizer.lr"));
  const double lr = optimizer->lr();
  RETURN_IF_ERROR(
      CheckValue(lr > 0 && std::isfinite(lr), "optimizer.lr", lr, "a finite number above 0"));
  return OptimizerFrom(*e).status();
}

absl::Status CheckLength(const Experiment& e) {
  if (e.has_steps()) return CheckValue(e.steps() >= 1, "steps", e.steps(), "at least 1");
  if (!e.has_epochs()) return absl::InvalidArgumentError("epochs: is required, or steps");
  return CheckValue(e.epochs() >= 1, "epochs", e.epochs(), "at least 1");
}

// Sets the epochs of a run whose length is given in steps. The data must be resolved.
absl::Status ResolveEpochs(Experiment* e) {
  if (!e->has_steps()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t an_epoch, StepsPerEpoch(*e));
  RETURN_IF_ERROR(CheckValue(an_epoch >= 1, "steps", e->steps(), "data to train on"));
  const uint64_t epochs = (e->steps() + an_epoch - 1) / an_epoch;
  RETURN_IF_ERROR(CheckValue(epochs <= kMaxEpochs, "steps", e->steps(),
                             absl::StrCat("at most ", kMaxEpochs, " epochs of ", an_epoch)));
  if (!e->has_epochs()) e->set_epochs(static_cast<uint32_t>(epochs));
  return CheckValue(
      e->epochs() == epochs, "epochs", e->epochs(),
      absl::StrCat(epochs, ", which steps: ", e->steps(), " take, or one of the two"));
}

// Rates that change each epoch would end with the last whole one.
void FillChange(const Experiment& e, LrScheduleConfig* schedule) {
  const bool is_open = e.has_steps() && !schedule->has_by() && !schedule->has_t_max();
  if (is_open && schedule->name() == Name(LrScheduleSpec::Kind::kCosine)) {
    schedule->set_by(Name(LrChange::kStep));
  }
}

absl::Status ResolveLrSchedule(const Experiment& e, LrScheduleConfig* schedule) {
  FillChange(e, schedule);
  RETURN_IF_ERROR(ResolveChoice("lr_schedule", schedule));
  ASSIGN_OR_RETURN(const LrScheduleSpec spec, LrScheduleFrom(e));
  const LrScheduleSpec::Kind kind = spec.kind;
  const bool ends = kind == LrScheduleSpec::Kind::kCosine || kind == LrScheduleSpec::Kind::kLinear;
  const bool ends_with_run = e.has_steps() && spec.by == LrChange::kStep;
  if (ends && !schedule->has_t_max() && !ends_with_run) schedule->set_t_max(e.epochs());
  if (ends) {
    RETURN_IF_ERROR(CheckValue(!schedule->has_t_max() || schedule->t_max() >= 1,
                               "lr_schedule.t_max", schedule->t_max(), "at least 1"));
    const double min_lr = schedule->min_lr(), lr = e.optimizer().lr();
    RETURN_IF_ERROR(CheckValue(min_lr >= 0 && min_lr <= lr, "lr_schedule.min_lr", min_lr,
                               absl::StrCat("0 to ", lr, ", which is optimizer.lr")));
  }
  if (kind != LrScheduleSpec::Kind::kStep) return absl::OkStatus();
  RETURN_IF_ERROR(CheckValue(schedule->step_size() >= 1, "lr_schedule.step_size",
                             schedule->step_size(), "at least 1"));
  const double gamma = schedule->gamma();
  return CheckValue(gamma > 0 && gamma <= 1, "lr_schedule.gamma", gamma,
                    "more than 0 and at most 1");
}

absl::Status ResolveUncompressed(const Experiment& e, EvaluationConfig* evaluation) {
  const std::string reason = WhyNotUncompressed(e);
  if (!evaluation->has_uncompressed()) evaluation->set_uncompressed(reason.empty());
  if (reason.empty() || !evaluation->uncompressed()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("evaluation.uncompressed: true, want false: ", reason));
}

absl::Status ResolveEvaluation(const Experiment& e, EvaluationConfig* evaluation) {
  if (evaluation->every_steps() > 0 && !evaluation->compressed() && !evaluation->uncompressed()) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluation.every_steps: ", evaluation->every_steps(),
                     ", want evaluation.compressed or .uncompressed: true with it"));
  }
  if (!evaluation->recalibrated()) return absl::OkStatus();
  if (!evaluation->uncompressed()) {
    return absl::InvalidArgumentError(
        "evaluation.recalibrated: true, want evaluation.uncompressed: true with it");
  }
  ASSIGN_OR_RETURN(const Model model, ModelFrom(e));
  const bool has_batch_norm =
      std::any_of(model.blocks.begin(), model.blocks.end(), [](const BlockSpec& block) {
        const std::vector<ParameterSpec> parameters = Parameters(block);
        return std::any_of(parameters.begin(), parameters.end(),
                           [](const ParameterSpec& parameter) {
                             return parameter.role == ParameterSpec::Role::kStatistics;
                           });
      });
  if (!has_batch_norm) {
    return absl::InvalidArgumentError(
        "evaluation.recalibrated: true, want false: the model has no batch norm");
  }
  if (!evaluation->has_recalibration_samples()) {
    evaluation->set_recalibration_samples(kRecalibrationSamples);
  }
  return CheckValue(evaluation->recalibration_samples() >= 1, "evaluation.recalibration_samples",
                    evaluation->recalibration_samples(), "at least 1");
}

absl::Status CheckCheckpoints(const Experiment& e) {
  const CheckpointsConfig& checkpoint = e.checkpoint();
  RETURN_IF_ERROR(
      CheckValue(checkpoint.keep() >= 1, "checkpoint.keep", checkpoint.keep(), "at least 1"));
  RETURN_IF_ERROR(CheckName("checkpoint.codec_state", "codec_state", checkpoint.codec_state(),
                            {"full", "epoch_end", "none"}));
  if (checkpoint.has_best()) {
    RETURN_IF_ERROR(CheckMeasure(e, "checkpoint.best", checkpoint.best()));
  }
  const double window = e.restarts().window();
  return CheckValue(window > 0 && std::isfinite(window), "restarts.window", window,
                    "a finite number of seconds above 0");
}

absl::Status CheckInitAt(const Experiment& e) {
  if (!e.has_init_at()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckName("init_at", "place", e.init_at(), {"coordinator", kAtStages}));
  if (e.has_init()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("init_at: ", e.init_at(), ", want `init`, the folder that is there"));
}

}  // namespace

absl::Status FillDefaults(Experiment* e) {
  Experiment filled;
  RETURN_IF_ERROR(MergeYaml(kExperimentDefaults, "defaults", &filled));
  filled.MergeFrom(*e);
  *e = std::move(filled);
  return absl::OkStatus();
}

absl::Status Resolve(Experiment* e) {
  RETURN_IF_ERROR(FillDefaults(e));
  RETURN_IF_ERROR(CheckRunName(e->name()));
  RETURN_IF_ERROR(CheckLength(*e));
  RETURN_IF_ERROR(ComputeFrom(*e).status());
  RETURN_IF_ERROR(CheckInitAt(*e));
  TakeTokensOfInit(e);
  RETURN_IF_ERROR(ResolveData(e->mutable_data()));
  RETURN_IF_ERROR(ResolveEpochs(e));
  RETURN_IF_ERROR(ResolveModel(e->data(), e->mutable_model()));
  if (e->has_lora()) RETURN_IF_ERROR(ResolveLora(e));
  RETURN_IF_ERROR(ResolveOptimizer(e));
  RETURN_IF_ERROR(ResolveLrSchedule(*e, e->mutable_lr_schedule()));
  RETURN_IF_ERROR(CheckPipeline(*e));
  RETURN_IF_ERROR(CheckReplicaCount(*e));
  RETURN_IF_ERROR(CheckParts(*e));
  RETURN_IF_ERROR(CheckCheckpoints(*e));
  RETURN_IF_ERROR(ResolveCuts(e));
  RETURN_IF_ERROR(ResolveDevices(e));
  RETURN_IF_ERROR(ResolveCompression(*e, e->mutable_compression()));
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(*e));
  RETURN_IF_ERROR(ResolveWithoutGradients(partition, e->mutable_compression()));
  RETURN_IF_ERROR(ResolveSlices(partition, e));
  RETURN_IF_ERROR(ResolveSums(partition.model, e));
  RETURN_IF_ERROR(ResolveStash(e));
  RETURN_IF_ERROR(CheckKept(*e));
  RETURN_IF_ERROR(ResolveUncompressed(*e, e->mutable_evaluation()));
  RETURN_IF_ERROR(ResolveEvaluation(*e, e->mutable_evaluation()));
  if (e->has_early_stop()) RETURN_IF_ERROR(ResolveEarlyStop(e));
  RETURN_IF_ERROR(CheckSmallestMessages(*e, partition));
  RETURN_IF_ERROR(ResolveReplicas(e));
  if (e->has_membership()) RETURN_IF_ERROR(ResolveMembership(e));
  if (e->has_capture()) RETURN_IF_ERROR(ResolveCapture(*e, e->mutable_capture()));
  return absl::OkStatus();
}

}  // namespace thinwire
