#include "coordinator/evaluate/target.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hub_cache.h"
#include "base/status.h"
#include "config/experiment.h"
#include "config/yaml_tree.h"
#include "coordinator/checkpoint/base.h"
#include "coordinator/files/record.h"
#include "coordinator/run/model_files.h"
#include "coordinator/run/published.h"
#include "coordinator/run/run_weights.h"

namespace thinwire {
namespace {

// Text of an experiment, and what an error calls it.
struct Source {
  std::string text, path;
};

// Returns the user's overrides behind those that the options and the lack of servers mean. `device`
// is that of the first stage.
std::vector<std::string> OverridesOf(const TargetOptions& options, const SessionOptions& session,
                                     const std::string& device) {
  std::vector<std::string> overrides;
  if (session.stages.empty()) {
    overrides = {"pipeline.stages=1", absl::StrCat("device=", device)};
  }
  if (options.samples > 0) {
    overrides.push_back(absl::StrCat("data.test_limit=", options.samples));
  }
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  return overrides;
}

// Loads the experiment with the overrides; `plain` is it without those about stages, and keeps its
// cuts where these are the program's.
absl::StatusOr<Experiment> Load(const Source& source, const TargetOptions& options,
                                const Experiment& plain, SessionOptions* session) {
  ASSIGN_OR_RETURN(
      Experiment experiment,
      ParseForStages(source.text, source.path, OverridesOf(options, *session, plain.device(0)),
                     session, &plain));
  experiment.clear_replicas();  // one of them has the whole model
  experiment.clear_membership();
  experiment.clear_capture();
  experiment.clear_init_at();  // weights come from here
  return experiment;
}

absl::Status NoDataWanted(const TargetOptions& options) {
  if (options.data.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--data: ", options.data, ", want it for a model's folder only: ", options.target,
      " has data of its own (--set data.file=... for others)"));
}

absl::StatusOr<EvaluationTarget> OpenRun(const RunAt& at, const TargetOptions& options,
                                         SessionOptions* session) {
  RETURN_IF_ERROR(NoDataWanted(options));
  ASSIGN_OR_RETURN(const RunWeights left, WeightsOf(at));
  ASSIGN_OR_RETURN(const Experiment trained, ParseResolved(left.text, left.path));
  EvaluationTarget target;
  ASSIGN_OR_RETURN(target.experiment, Load({left.text, left.path}, options, trained, session));
  RETURN_IF_ERROR(CheckModelVocabulary(left.model, target.experiment));
  ASSIGN_OR_RETURN(ModelFolder folder, OpenWeights(left.model));
  ASSIGN_OR_RETURN(target.weights, ModelShares::Of(target.experiment, std::move(folder)));
  target.dir = left.model;
  target.epochs = left.epochs;
  return target;
}

// Opens what the experiment begins with.
absl::StatusOr<EvaluationTarget> OpenInitial(const Source& source, const TargetOptions& options,
                                             SessionOptions* session) {
  ASSIGN_OR_RETURN(const Experiment plain,
                   ParseExperiment(source.text, source.path, options.overrides));
  EvaluationTarget target;
  // A text is counted again only if an override says which, or how it becomes samples.
  ASSIGN_OR_RETURN(target.experiment, Load({ToYaml(plain), source.path}, options, plain, session));
  if (!target.experiment.has_init()) return target;
  ASSIGN_OR_RETURN(target.weights, ModelShares::Initial(target.experiment));
  RETURN_IF_ERROR(CheckInitialVocabulary(target.experiment));
  target.dir = target.experiment.init();
  return target;
}

absl::StatusOr<EvaluationTarget> OpenFile(const TargetOptions& options, SessionOptions* session) {
  RETURN_IF_ERROR(NoDataWanted(options));
  ASSIGN_OR_RETURN(std::string text, ReadYamlFile(options.target));
  return OpenInitial({std::move(text), options.target}, options, session);
}

absl::StatusOr<EvaluationTarget> OpenPublished(const std::string& dir, const TargetOptions& options,
                                               SessionOptions* session) {
  if (options.data.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.target, " is a model's folder, want --data: a text, or the name of one"));
  }
  ASSIGN_OR_RETURN(std::string file, FileToEvaluate(dir, options.data));
  return OpenInitial({std::move(file), options.target}, options, session);
}

}  // namespace

absl::StatusOr<EvaluationTarget> OpenTarget(const TargetOptions& options, SessionOptions* session) {
  const RunAt at = ParseRunAt(options.target);
  const absl::Status recorded = CheckRecorded(at.run);
  if (recorded.ok()) return OpenRun(at, options, session);
  ASSIGN_OR_RETURN(const std::string dir, HubFolderOr(options.target));
  if (IsPublished(dir)) return OpenPublished(dir, options, session);
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(options.target, ignored) &&
                       !std::filesystem::is_directory(options.target, ignored);
  if (is_file) return OpenFile(options, session);
  return NoModel(recorded);
}

}  // namespace thinwire
