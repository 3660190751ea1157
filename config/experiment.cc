#include "config/experiment.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/choices.h"
#include "config/resolve.h"
#include "config/yaml_message.h"
#include "config/yaml_tree.h"

namespace thinwire {
namespace {

// "dir/resnet18.yaml" -> "resnet18"
std::string Stem(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  return file.substr(0, file.find_last_of('.'));
}

void ForgetReplacedBy(const Experiment& overlay, Experiment* e) {
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

bool IsChoice(const std::string& assignment) {
  const std::string path = assignment.substr(0, assignment.find('='));
  return absl::EndsWith(path, ".codec") || absl::EndsWith(path, ".name") ||
         absl::EndsWith(path, ".kind") || absl::EndsWith(path, ".feedback");
}

absl::Status ApplyOverrides(std::vector<std::string> overrides, Experiment* e) {
  std::stable_partition(overrides.begin(), overrides.end(), IsChoice);
  for (const std::string& assignment : overrides) {
    Experiment overlay;
    RETURN_IF_ERROR(Override(assignment, &overlay));
    ForgetReplacedBy(overlay, e);
    RETURN_IF_ERROR(Override(assignment, e));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source,
                                           const std::vector<std::string>& overrides) {
  Experiment e;
  RETURN_IF_ERROR(MergeYaml(text, source, &e));
  if (!e.has_name()) e.set_name(Stem(source));
  RETURN_IF_ERROR(ApplyOverrides(overrides, &e));
  const absl::Status status = Resolve(&e);
  if (status.ok()) return e;
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", status.message()));
}

absl::StatusOr<Experiment> LoadExperiment(const std::string& path,
                                          const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  return ParseExperiment(text, path, overrides);
}

std::string ToYaml(const Experiment& experiment) { return WriteYaml(experiment); }

}  // namespace thinwire
