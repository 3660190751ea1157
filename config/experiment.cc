#include "config/experiment.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/checkpoint_config.h"
#include "config/choices.h"
#include "config/direction.h"
#include "config/origins.h"
#include "config/resolve.h"
#include "config/silent_fields.h"
#include "config/yaml_message.h"
#include "config/yaml_tree.h"

namespace thinwire {
namespace {

// "dir/resnet18.yaml" -> "resnet18"
std::string Stem(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  return file.substr(0, file.find_last_of('.'));
}

// What was counted of a text says nothing of another one, nor of other tokens.
void ForgetCorpus(const DataConfig& overlay, DataConfig* data) {
  const bool is_other = overlay.has_file() || overlay.has_split() || overlay.has_tokens() ||
                        overlay.has_vocabulary() || overlay.has_dir() || overlay.has_verify();
  if (is_other) data->clear_corpus();
}

void ForgetReplacedBy(const Experiment& overlay, Experiment* e) {
  ForgetReplaced(overlay.data(), e->mutable_data());
  ForgetCorpus(overlay.data(), e->mutable_data());
  ForgetReplaced(overlay.model(), e->mutable_model());
  ForgetReplaced(overlay.optimizer(), e->mutable_optimizer());
  ForgetReplaced(overlay.lr_schedule(), e->mutable_lr_schedule());
  CompressionConfig* compression = e->mutable_compression();
  ForgetReplaced(overlay.compression().activations(), compression->mutable_activations());
  ForgetReplaced(overlay.compression().gradients(), compression->mutable_gradients());
  if (compression->has_bottleneck()) {
    ForgetReplaced(overlay.compression().bottleneck(), compression->mutable_bottleneck());
  }
  for (auto& [cut, boundary] : *compression->mutable_boundaries()) {
    const auto found = overlay.compression().boundaries().find(cut);
    if (found == overlay.compression().boundaries().end()) continue;
    if (boundary.has_activations()) {
      ForgetReplaced(found->second.activations(), boundary.mutable_activations());
    }
    if (boundary.has_gradients()) {
      ForgetReplaced(found->second.gradients(), boundary.mutable_gradients());
    }
    if (boundary.has_bottleneck()) {
      ForgetReplaced(found->second.bottleneck(), boundary.mutable_bottleneck());
    }
  }
}

const DirectionConfig& GeneralOf(const CompressionConfig& compression, bool gradient) {
  return gradient ? compression.gradients() : compression.activations();
}

// What a cut's entry says itself.
DirectionConfig OwnOf(const CompressionConfig& compression, const std::string& cut, bool gradient) {
  const auto found = compression.boundaries().find(cut);
  if (found == compression.boundaries().end()) return {};
  return gradient ? found->second.gradients() : found->second.activations();
}

DirectionConfig WholeOf(const CompressionConfig& compression, const std::string& cut,
                        bool gradient) {
  return Overlaid(GeneralOf(compression, gradient), OwnOf(compression, cut, gradient));
}

// `after` is `before` with `overlay` over it.
void ForgetSilencedBy(const CompressionConfig& before, const CompressionConfig& overlay,
                      CompressionConfig* after) {
  const CompressionConfig whole = *after;
  for (const bool gradient : {false, true}) {
    ForgetSilenced(GeneralOf(before, gradient), GeneralOf(overlay, gradient),
                   GeneralOf(whole, gradient),
                   gradient ? after->mutable_gradients() : after->mutable_activations());
    for (auto& [cut, boundary] : *after->mutable_boundaries()) {
      if (!(gradient ? boundary.has_gradients() : boundary.has_activations())) continue;
      ForgetSilenced(WholeOf(before, cut, gradient), OwnOf(overlay, cut, gradient),
                     WholeOf(whole, cut, gradient),
                     gradient ? boundary.mutable_gradients() : boundary.mutable_activations());
    }
  }
}

// One overlay of all overrides: a choice then replaces that of the file, and none of the parameters
// that another override gives it.
absl::Status ApplyOverrides(const std::vector<std::string>& overrides, Experiment* e,
                            Origins* origins) {
  Experiment all;
  for (const std::string& assignment : overrides) {
    Experiment overlay;
    RETURN_IF_ERROR(Override(assignment, &overlay));
    ForgetReplacedBy(overlay, &all);
    RETURN_IF_ERROR(Override(assignment, &all, origins));
  }
  const CompressionConfig file = e->compression();
  ForgetReplacedBy(all, e);
  RETURN_IF_ERROR(MergeYaml(WriteYaml(all), "--set", e));  // MergeFrom would append lists
  ForgetSilencedBy(file, all.compression(), e->mutable_compression());
  return absl::OkStatus();
}

// A field of the model that a checkpoint fills in is that file's word.
absl::Status FillModel(Experiment* e, Origins* origins) {
  const ModelConfig given = e->model();
  RETURN_IF_ERROR(FillFromCheckpoint(e));
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  e->model().GetReflection()->ListFields(e->model(), &fields);
  for (const auto* field : fields) {
    if (field->is_repeated() || given.GetReflection()->HasField(given, field)) continue;
    origins->Add(absl::StrCat("model.", field->name()),
                 absl::StrCat("init: ", e->init(), "/config.json: "), /*is_section=*/false);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source,
                                           const std::vector<std::string>& overrides,
                                           uint32_t stages) {
  Experiment e;
  Origins origins;
  RETURN_IF_ERROR(MergeYaml(text, source, &e, &origins));
  if (!e.has_name()) e.set_name(Stem(source));
  RETURN_IF_ERROR(ApplyOverrides(overrides, &e, &origins));
  if (stages > 0 && !e.pipeline().has_stages()) e.mutable_pipeline()->set_stages(stages);
  absl::Status status = FillModel(&e, &origins);
  if (status.ok()) status = Resolve(&e);
  if (status.ok()) status = CheckAgainstCheckpoint(e);
  if (status.ok()) return e;
  const std::string refusal(status.message()), place = origins.Of(refusal);
  return absl::InvalidArgumentError(
      absl::StrCat(place.empty() ? YamlPlace(source, /*line=*/0) : place, refusal));
}

absl::StatusOr<Experiment> LoadExperiment(const std::string& path,
                                          const std::vector<std::string>& overrides,
                                          uint32_t stages) {
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  return ParseExperiment(text, path, overrides, stages);
}

std::string ToYaml(const Experiment& experiment) { return WriteYaml(experiment); }

}  // namespace thinwire
