#include "coordinator/run/run.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "config/specs.h"
#include "coordinator/fleet/metrics_target.h"
#include "coordinator/fleet/stage_setup.h"
#include "coordinator/run/boundary_totals.h"
#include "coordinator/run/captures.h"
#include "coordinator/run/provenance.h"

namespace thinwire {
namespace {

// A sample has a label, or one for each position.
template <typename Report>
uint64_t Labels(const Report& report) {
  return report.samples() * std::max<uint64_t>(1, report.positions());
}

// Sums over the steps of one epoch.
struct EpochSums {
  double loss = 0;  // sum over samples
  uint64_t correct = 0, samples = 0, labels = 0;
  double lr = 0;

  void Add(const StepReport& step) {
    loss += step.loss() * step.samples();
    correct += step.correct();
    samples += step.samples();
    labels += Labels(step);
    lr = step.learning_rate();
  }
};

StepRecord RecordOf(const StepReport& step) {
  StepRecord record;
  record.set_epoch(step.epoch());
  record.set_step(step.step());
  record.set_loss(step.loss());
  record.set_accuracy(step.samples() == 0 ? 0 : 1.0 * step.correct() / Labels(step));
  record.set_lr(step.learning_rate());
  record.set_samples(step.samples());
  record.set_seconds(step.seconds());
  return record;
}

class Runner {
 public:
  Runner(const Experiment& experiment, Fleet* fleet, RunObserver* observer, Summary* summary)
      : experiment_(experiment),
        fleet_(*fleet),
        observer_(*observer),
        summary_(*summary),
        totals_(CutNames(experiment), fleet->size()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Acquire());
    RETURN_IF_ERROR(Configure());
    RETURN_IF_ERROR(CheckCaptureSteps(experiment_, Plan()));
    RETURN_IF_ERROR(observer_.OnStart(Plan()));
    for (uint32_t epoch = 1; epoch <= experiment_.epochs(); ++epoch) {
      RETURN_IF_ERROR(RunEpoch(epoch));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Acquire() {
    std::vector<AcquireResponse> answers;
    RETURN_IF_ERROR(fleet_.Acquire(&answers));
    threads_ = StageThreads(experiment_, &fleet_, answers);
    Provenance* provenance = summary_.mutable_provenance();
    provenance->set_microbatches(experiment_.pipeline().microbatches());
    RecordBuilds(answers, threads_, provenance);
    WarnOfOtherBuilds(*provenance, &fleet_);
    for (int i = 0; i < fleet_.size(); ++i) {
      stages_.push_back({MetricsTarget(fleet_.stage(i).address(), answers[i].metrics_address())});
    }
    return absl::OkStatus();
  }

  absl::Status Configure() {
    ASSIGN_OR_RETURN(const Configured configured, ConfigureStages(experiment_, threads_, &fleet_));
    data_ = configured.data;
    RecordConfigured(configured, &summary_);
    return absl::OkStatus();
  }

  RunPlan Plan() const {
    const uint64_t batch = experiment_.data().batch_size();
    return {experiment_.epochs(), (data_.train_samples() + batch - 1) / batch,
            data_.train_samples(), stages_, summary_.device()};
  }

  absl::Status RunEpoch(uint32_t epoch) {
    EpochRecord& record = *summary_.add_epochs();
    record.set_epoch(epoch);
    absl::Status status = Train(epoch, &record);
    if (status.ok()) status = FetchCaptures(experiment_, Plan(), epoch, &fleet_, &observer_);
    if (status.ok()) status = Evaluate(epoch, &record);
    if (!status.ok()) {
      summary_.mutable_epochs()->RemoveLast();  // an epoch counts when it is complete
      return status;
    }
    return observer_.OnEpoch(record);
  }

  absl::Status Train(uint32_t epoch, EpochRecord* record) {
    TrainRequest request;
    request.set_epoch(epoch);
    request.set_samples(data_.train_samples());
    EpochSums sums;
    epoch_start_ = SteadyTime::Now();
    RETURN_IF_ERROR(fleet_.OnAll([&](StageClient& stage) {
      return stage.Train(request, [&](const StageEvent& event) {
        absl::MutexLock lock(&events_);
        return OnTrainEvent(stage, event, &sums);
      });
    }));
    const double seconds = SecondsSince(epoch_start_);
    training_seconds_ += seconds;
    if (sums.samples != data_.train_samples()) {
      return absl::InternalError(absl::StrCat("epoch ", epoch, ": the last stage reported ",
                                              sums.samples, " trained samples of ",
                                              data_.train_samples()));
    }
    record->set_lr(sums.lr);
    record->mutable_train()->set_loss(sums.loss / sums.samples);
    record->mutable_train()->set_accuracy(1.0 * sums.correct / sums.labels);
    record->set_seconds(seconds);
    record->set_samples_per_second(sums.samples / seconds);
    absl::MutexLock lock(&events_);
    const RunTotals totals = Totals(training_seconds_);
    for (EpochBoundary& boundary : EpochBoundaries(before_epoch_, totals.boundaries)) {
      *record->add_boundaries() = std::move(boundary);
    }
    before_epoch_ = totals.boundaries;
    return observer_.OnTotals(totals);
  }

  absl::Status OnTrainEvent(const StageClient& stage, const StageEvent& event, EpochSums* sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(events_) {
    if (event.has_step()) {
      sums->Add(event.step());
      return Own(observer_.OnStep(RecordOf(event.step())));
    }
    if (event.has_stage()) {
      StageReport report = event.stage();
      report.set_stage(static_cast<uint32_t>(stage.stage()));
      totals_.Update(report);
      return Own(observer_.OnTotals(Totals(training_seconds_ + SecondsSince(epoch_start_))));
    }
    return absl::OkStatus();
  }

  // An observer's failure is the coordinator's own, whichever stage's event it came from.
  absl::Status Own(absl::Status status) {
    if (status.ok()) return status;
    fleet_.Fail({Failure::kCoordinator, Failure::Kind::kError, std::move(status)});
    return absl::CancelledError("the run has failed");
  }

  RunTotals Totals(double seconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(events_) {
    RunTotals totals;
    totals.boundaries = totals_.Records();
    *summary_.mutable_boundaries() = {totals.boundaries.begin(), totals.boundaries.end()};
    const double available = fleet_.size() * seconds;
    if (available > 0) totals.bubble_ratio = 1 - totals_.BusySeconds() / available;
    return totals;
  }

  absl::Status Evaluate(uint32_t epoch, EpochRecord* record) {
    const EvaluationConfig& config = experiment_.evaluation();
    const bool due = config.every() > 0 && epoch % config.every() == 0;
    if (!due && epoch != experiment_.epochs()) return absl::OkStatus();
    const SteadyTime start = SteadyTime::Now();
    TestRecord test;
    if (config.compressed()) {
      RETURN_IF_ERROR(EvaluateOnce(epoch, Inference::kCompressed, test.mutable_compressed()));
    }
    if (config.uncompressed()) {
      RETURN_IF_ERROR(EvaluateOnce(epoch, Inference::kUncompressed, test.mutable_uncompressed()));
    }
    if (config.recalibrated()) {
      RETURN_IF_ERROR(EvaluateOnce(epoch, Inference::kUncompressedRecalibrated,
                                   test.mutable_uncompressed_recalibrated()));
    }
    if (const std::string reason = WhyNotUncompressed(experiment_); !reason.empty()) {
      test.set_uncompressed_reason(reason);
    }
    record->set_evaluation_seconds(SecondsSince(start));
    if (config.compressed() || config.uncompressed()) *record->mutable_test() = test;
    return absl::OkStatus();
  }

  absl::Status EvaluateOnce(uint32_t epoch, Inference inference, Measured* measured) {
    RETURN_IF_ERROR(observer_.OnEvaluation(epoch, inference));
    EvaluateRequest request;
    request.set_epoch(epoch);
    request.set_compressed(inference == Inference::kCompressed);
    request.set_samples(data_.test_samples());
    if (inference == Inference::kUncompressedRecalibrated) {
      request.set_recalibration_samples(std::min<uint64_t>(
          experiment_.evaluation().recalibration_samples(), data_.train_samples()));
    }
    EvaluationReport report;
    RETURN_IF_ERROR(fleet_.OnAll([&](StageClient& stage) {
      return stage.Evaluate(request, [&](const StageEvent& event) {
        absl::MutexLock lock(&events_);
        if (event.has_evaluation()) report = event.evaluation();
        return absl::OkStatus();
      });
    }));
    if (report.samples() != data_.test_samples()) {
      return absl::InternalError(absl::StrCat("epoch ", epoch, ": the last stage reported ",
                                              report.samples(), " test samples of ",
                                              data_.test_samples()));
    }
    measured->set_loss(report.loss());
    measured->set_accuracy(1.0 * report.correct() / Labels(report));
    if (report.has_perplexity()) measured->set_perplexity(report.perplexity());
    return absl::OkStatus();
  }

  const Experiment& experiment_;
  Fleet& fleet_;
  RunObserver& observer_;
  Summary& summary_;
  std::vector<int> threads_;  // per stage
  std::vector<RunPlan::Stage> stages_;
  ConfigureResponse data_;  // of the first stage
  absl::Mutex events_;      // held while the event of one stage is dealt with
  BoundaryTotals totals_ ABSL_GUARDED_BY(events_);
  std::vector<BoundaryRecord> before_epoch_;  // totals when the last epoch ended
  SteadyTime epoch_start_;
  double training_seconds_ = 0;  // of finished epochs
};

}  // namespace

absl::Status RunExperiment(const Experiment& experiment, Fleet* fleet, RunObserver* observer,
                           Summary* summary) {
  summary->set_seed(experiment.seed());
  summary->set_stages(static_cast<uint32_t>(fleet->size()));
  return Runner(experiment, fleet, observer, summary).Run();
}

}  // namespace thinwire
