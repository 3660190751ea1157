#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/sections.h"
#include "config/specs.h"

namespace thinwire {
namespace {

constexpr char kLoss[] = "loss", kAccuracy[] = "accuracy";
constexpr uint32_t kPatience = 5;

void FillEarlyStop(EarlyStopConfig* stop) {
  if (!stop->has_metric()) stop->set_metric(kLoss);
  if (!stop->has_patience()) stop->set_patience(kPatience);
  if (!stop->has_min_delta()) stop->set_min_delta(0);
}

}  // namespace

absl::Status CheckMeasure(const Experiment& experiment, const std::string& path,
                          const std::string& measure) {
  RETURN_IF_ERROR(CheckName(path, "measure", measure, {kLoss, kAccuracy}));
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  if (measure == kAccuracy && data.score_unit > 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": accuracy, want loss: labels of task ",
                                                   experiment.data().task(), " are scores"));
  }
  if (!experiment.evaluation().compressed() && !experiment.evaluation().uncompressed()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", measure,
                     ", but nothing is evaluated: want evaluation.compressed or "
                     "evaluation.uncompressed: true"));
  }
  return absl::OkStatus();
}

absl::Status ResolveEarlyStop(Experiment* experiment) {
  EarlyStopConfig* const stop = experiment->mutable_early_stop();
  FillEarlyStop(stop);
  RETURN_IF_ERROR(CheckMeasure(*experiment, "early_stop.metric", stop->metric()));
  RETURN_IF_ERROR(
      CheckValue(stop->patience() >= 1, "early_stop.patience", stop->patience(), "at least 1"));
  RETURN_IF_ERROR(CheckValue(stop->min_delta() >= 0 && std::isfinite(stop->min_delta()),
                             "early_stop.min_delta", stop->min_delta(),
                             "a finite number of at least 0"));
  const EvaluationConfig& evaluation = experiment->evaluation();
  if (TrainsLocally(*experiment) && evaluation.every_steps() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "early_stop: evaluation.every_steps is ", evaluation.every_steps(),
        " with replicas.sync: local, want 0: the run may end only where replicas share what they "
        "learned, with an epoch"));
  }
  if (evaluation.every() > 0 || evaluation.every_steps() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "early_stop: nothing is evaluated before the run's end, want evaluation.every or "
      "evaluation.every_steps: at least 1");
}

}  // namespace thinwire
