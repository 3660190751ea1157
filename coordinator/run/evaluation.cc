#include "coordinator/run/evaluation.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "config/specs.h"
#include "coordinator/run/class_measures.h"
#include "coordinator/run/score_measures.h"
#include "coordinator/run/tally.h"

namespace thinwire {
namespace {

// Returns the measures of the task that the data are; nothing if they are no labelled sentences.
absl::StatusOr<std::optional<GlueMeasures>> MeasuresOfTask(const DataConfig& data) {
  if (!data.has_task()) return std::nullopt;
  GlueTask task{};
  RETURN_IF_ERROR(FromName(data.task(), &task));
  return std::make_optional(MeasuresOf(task));
}

}  // namespace

absl::StatusOr<Evaluated> EvaluateOnce(const DataConfig& data, const EvaluateRequest& request,
                                       Fleet* fleet) {
  ASSIGN_OR_RETURN(const std::optional<GlueMeasures> sentences, MeasuresOfTask(data));
  absl::Mutex mutex;
  EvaluationReport report;
  Evaluated evaluated;
  RETURN_IF_ERROR(fleet->OnFirstRow([&](StageClient& stage) {
    return stage.Evaluate(request, [&](const StageEvent& event) {
      const absl::MutexLock lock(&mutex);
      if (event.has_evaluation()) report = event.evaluation();
      evaluated.wire_bytes += event.evaluation_wire_bytes();  // 0 in other events
      return absl::OkStatus();
    });
  }));
  if (report.samples() != request.samples()) {
    return absl::InternalError(absl::StrCat("epoch ", request.epoch(), ": the last stage reported ",
                                            report.samples(), " evaluated samples of ",
                                            request.samples()));
  }
  Measured& measured = evaluated.measured;
  measured.set_loss(report.loss());
  SetAccuracy(report, &measured);
  if (report.has_perplexity()) measured.set_perplexity(report.perplexity());
  if (!sentences) return evaluated;
  if (sentences->correlations) {
    ASSIGN_OR_RETURN(*measured.mutable_scores(), MeasureScores(report));
    return evaluated;
  }
  ASSIGN_OR_RETURN(*measured.mutable_classes(),
                   MeasureClasses({report.confusion().begin(), report.confusion().end()},
                                  report.samples(), *sentences));
  return evaluated;
}

bool IsEvaluationDue(const Experiment& experiment, uint32_t epoch) {
  const uint32_t every = experiment.evaluation().every();
  return (every > 0 && epoch % every == 0) || epoch == experiment.epochs();
}

bool IsEvaluationDueAt(const Experiment& experiment, uint64_t step, const RunPlan& plan) {
  const uint32_t every = experiment.evaluation().every_steps();
  if (every == 0 || step == 0 || step % every != 0) return false;
  const uint32_t epoch = plan.EpochOf(step);
  return step != plan.EndOf(epoch) || !IsEvaluationDue(experiment, epoch);
}

absl::StatusOr<EvaluationRecord> Evaluate(const Experiment& experiment,
                                          const ConfigureResponse& data, uint32_t epoch,
                                          uint64_t step, Fleet* fleet, RunObserver* observer) {
  const EvaluationConfig& config = experiment.evaluation();
  const SteadyTime start = SteadyTime::Now();
  TestRecord test;
  test.set_held_out(experiment.data().held_out() > 0);
  const auto evaluate = [&](Inference inference, Measured* measured) -> absl::Status {
    RETURN_IF_ERROR(observer->OnEvaluation(epoch, inference));
    EvaluateRequest request;
    request.set_epoch(epoch);
    request.set_compressed(inference == Inference::kCompressed);
    request.set_samples(data.test_samples());
    if (inference == Inference::kUncompressedRecalibrated) {
      request.set_recalibration_samples(
          std::min<uint64_t>(config.recalibration_samples(), data.train_samples()));
    }
    ASSIGN_OR_RETURN(const Evaluated evaluated, EvaluateOnce(experiment.data(), request, fleet));
    *measured = evaluated.measured;
    return absl::OkStatus();
  };
  if (config.compressed()) {
    RETURN_IF_ERROR(evaluate(Inference::kCompressed, test.mutable_compressed()));
  }
  if (config.uncompressed()) {
    RETURN_IF_ERROR(evaluate(Inference::kUncompressed, test.mutable_uncompressed()));
  }
  if (config.recalibrated()) {
    RETURN_IF_ERROR(
        evaluate(Inference::kUncompressedRecalibrated, test.mutable_uncompressed_recalibrated()));
  }
  if (const std::string reason = WhyNotUncompressed(experiment); !reason.empty()) {
    test.set_uncompressed_reason(reason);
  }
  EvaluationRecord record;
  record.set_epoch(epoch);
  record.set_step(step);
  record.set_seconds(SecondsSince(start));
  if (config.compressed() || config.uncompressed()) *record.mutable_test() = test;
  return record;
}

}  // namespace thinwire
