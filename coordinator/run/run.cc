#include "coordinator/run/run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/fleet/metrics_target.h"
#include "coordinator/fleet/stage_setup.h"
#include "coordinator/run/captures.h"
#include "coordinator/run/checkpointer.h"
#include "coordinator/run/evaluation.h"
#include "coordinator/run/model_shares.h"
#include "coordinator/run/provenance.h"
#include "coordinator/run/restart_budget.h"
#include "coordinator/run/restore.h"
#include "coordinator/run/resumable.h"
#include "coordinator/run/tally.h"
#include "coordinator/run/trace_recorder.h"
#include "coordinator/trace/steps.h"

namespace thinwire {
namespace {

class Runner {
 public:
  Runner(const Experiment& experiment, Fleet* fleet, RunObserver* observer, Summary* summary,
         const RunOptions& options)
      : experiment_(experiment),
        fleet_(fleet),
        observer_(*observer),
        summary_(*summary),
        options_(options),
        restarts_(experiment.restarts()),
        tally_(CutNames(experiment), fleet->size()) {
    if (options.trace) tracer_.emplace(EmptyTrace(experiment, options.run, *options.trace));
  }

  absl::Status Run() {
    if (options_.from) {
      from_ = std::make_unique<const FoundCheckpoint>(*options_.from);
      *summary_.mutable_events() = from_->manifest.progress().events();
      RETURN_IF_ERROR(Tell(Event("resumed", from_->manifest.step())));
    }
    for (;;) {
      absl::Status status = RunGeneration();
      // The fetch of a checkpoint continues through an interruption, or begins with it.
      if (checkpointer_ && fleet_->interrupted()) {
        checkpointer_->WriteHeld();
        checkpointer_->Finish().IgnoreError();
      }
      checkpointer_.reset();  // before the fleet, whose stages it calls
      if (status.ok()) return status;
      if (fleet_->interrupted()) RETURN_IF_ERROR(WarnOfNoTrace());
      const std::optional<Failure> leaving = fleet_->leaving();
      if (leaving && fleet_->ended_after_step() && options_.next_generation) {
        RETURN_IF_ERROR(GoOn(*leaving));
        continue;
      }
      const std::optional<Failure> cause = fleet_->cause();
      // A stage that was never there cannot be lost; one that was started and died can.
      const bool was_there = are_leased_ || (cause && cause->kind == Failure::Kind::kDead);
      const bool goes_on = cause && was_there && IsLoss(*cause) && !fleet_->interrupted() &&
                           !fleet_->ended_after_step() && options_.next_generation &&
                           restarts_.Allow(SteadyTime::Now());
      if (!goes_on) return status;
      RETURN_IF_ERROR(GoOn(*cause));
    }
  }

 private:
  // Runs from the begin to the end of the run, or to the loss of a stage.
  absl::Status RunGeneration() {
    summary_.mutable_provenance()->clear_stages();
    summary_.mutable_provenance()->clear_devices();
    stages_.clear();
    RETURN_IF_ERROR(Acquire());
    RETURN_IF_ERROR(Configure());
    RETURN_IF_ERROR(from_ ? RestoreFrom(*from_) : BeginAnew());
    RETURN_IF_ERROR(CheckCaptureSteps(experiment_, Plan()));
    RETURN_IF_ERROR(StartTrace());
    RETURN_IF_ERROR(observer_.OnStart(Plan()));
    MakeCheckpointer();
    while (static_cast<uint32_t>(summary_.epochs_size()) < experiment_.epochs()) {
      RETURN_IF_ERROR(RunEpoch(static_cast<uint32_t>(summary_.epochs_size()) + 1));
    }
    return checkpointer_ ? checkpointer_->Finish() : absl::OkStatus();
  }

  // Finds the last checkpoint and the stages that continue from it.
  absl::Status GoOn(const Failure& loss) {
    absl::StatusOr<FoundCheckpoint> found = NewestCheckpoint(options_.checkpoints);
    if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
    from_.reset();
    if (found.ok()) from_ = std::make_unique<const FoundCheckpoint>(*std::move(found));
    RunEvent event = Event("restarted", from_ ? from_->manifest.step() : 0);
    event.set_stage(static_cast<uint32_t>(loss.stage));
    event.set_reason(NameOf(loss.kind));
    event.set_error(std::string(loss.status.message()));
    lost_at_ = SteadyTime::Now();
    RETURN_IF_ERROR(Tell(event));
    ASSIGN_OR_RETURN(fleet_, options_.next_generation(loss));
    return absl::OkStatus();
  }

  static RunEvent Event(const char* type, uint64_t step) {
    RunEvent event;
    event.set_type(type);
    event.set_time(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()));
    event.set_step(step);
    return event;
  }

  static const char* NameOf(Failure::Kind kind) {
    switch (kind) {
      case Failure::Kind::kDead:
        return "dead";
      case Failure::Kind::kSilent:
        return "silent";
      case Failure::Kind::kUnleased:
        return "unleased";
      case Failure::Kind::kEnds:
        return "ends";
      case Failure::Kind::kError:
        return "error";
    }
    return "";
  }

  absl::Status Tell(const RunEvent& event) {
    *summary_.add_events() = event;
    return observer_.OnEvent(event);
  }

  absl::Status BeginAnew() {
    const RunProgress nothing;
    RETURN_IF_ERROR(SetProgress(nothing, /*step=*/0));
    return ImportInitial();
  }

  absl::Status RestoreFrom(const FoundCheckpoint& from) {
    const CheckpointManifest& manifest = from.manifest;
    if (manifest.steps_per_epoch() != StepsPerEpoch()) {
      return absl::InvalidArgumentError(
          absl::StrCat(from.path, ": an epoch had ", manifest.steps_per_epoch(), " steps, now has ",
                       StepsPerEpoch(), ": want the same data and batch size"));
    }
    ASSIGN_OR_RETURN(const Experiment then, ExperimentOf(from));
    RETURN_IF_ERROR(CheckData(then, from));
    ASSIGN_OR_RETURN(const RestorePlan plan, PlanRestore(then, experiment_, manifest));
    for (const std::string& reset : plan.resets) RETURN_IF_ERROR(observer_.OnWarning(reset));
    RETURN_IF_ERROR(Restore(experiment_, from, plan, fleet_));
    RETURN_IF_ERROR(RemoveCheckpointsAfter(options_.checkpoints, manifest.step()));
    return SetProgress(manifest.progress(), manifest.step());
  }

  // Checks that the data are those that the run began with, or warns that they are others.
  absl::Status CheckData(const Experiment& then, const FoundCheckpoint& from) {
    Provenance* provenance = summary_.mutable_provenance();
    const auto other = OtherData(then, experiment_, from.manifest, *provenance);
    if (other.ok()) return other->empty() ? absl::OkStatus() : observer_.OnWarning(*other);
    // The summary keeps the digest of the data that was trained on.
    provenance->set_train_digest(from.manifest.train_digest());
    provenance->set_test_digest(from.manifest.test_digest());
    *summary_.mutable_epochs() = from.manifest.progress().epochs();
    *summary_.mutable_boundaries() = from.manifest.progress().boundaries();
    return absl::Status(other.status().code(),
                        absl::StrCat(from.path, ": ", other.status().message()));
  }

  absl::Status SetProgress(const RunProgress& progress, uint64_t step) {
    if (options_.cut_record) RETURN_IF_ERROR(options_.cut_record(progress));
    *summary_.mutable_epochs() = progress.epochs();
    *summary_.mutable_boundaries() = progress.boundaries();
    absl::MutexLock lock(&events_);
    tally_ = Tally(CutNames(experiment_), fleet_->size(), progress, step);
    return absl::OkStatus();
  }

  // Checks the steps to trace. In the first generation they must be still to come; a later one
  // traces those that are repeated.
  absl::Status StartTrace() {
    if (!tracer_) return absl::OkStatus();
    if (std::exchange(has_traced_, true)) {
      tracer_->RestartAfter(Step());
      return absl::OkStatus();
    }
    return CheckTraceComes(tracer_->steps(), Step(), StepsPerEpoch() * experiment_.epochs());
  }

  // Passes on the trace so far, if steps to trace may have ended since step `before`.
  absl::Status TellTrace(uint64_t before) {
    if (!tracer_ || Step() < tracer_->steps().first() || before >= tracer_->steps().last()) {
      return absl::OkStatus();
    }
    return observer_.OnTrace(tracer_->Upto(Step()));
  }

  absl::Status WarnOfNoTrace() {
    if (!tracer_ || Step() >= tracer_->steps().first()) return absl::OkStatus();
    return observer_.OnWarning(absl::StrCat("trace: step ", tracer_->steps().first(),
                                            " never came, the run ended with step ", Step()));
  }

  void MakeCheckpointer() {
    if (options_.checkpoints.empty() || !WantsCheckpoints()) return;
    checkpointer_.emplace(
        CheckpointerOptions{options_.checkpoints, experiment_.checkpoint().keep(), options_.beside,
                            from_ ? from_->manifest.progress().epochs_kept() : EpochsKept()},
        fleet_, [this](const CheckpointManifest& manifest) {
          absl::MutexLock lock(&events_);
          Own(observer_.OnCheckpoint(manifest)).IgnoreError();
        });
  }

  absl::Status Acquire() {
    std::vector<AcquireResponse> answers;
    are_leased_ = false;
    RETURN_IF_ERROR(fleet_->Acquire(&answers));
    are_leased_ = true;
    threads_ = StageThreads(experiment_, fleet_, answers);
    Provenance* provenance = summary_.mutable_provenance();
    provenance->set_microbatches(experiment_.pipeline().microbatches());
    RecordBuilds(answers, threads_, provenance);
    WarnOfOtherBuilds(*provenance, fleet_);
    for (int i = 0; i < fleet_->size(); ++i) {
      stages_.push_back({MetricsTarget(fleet_->stage(i).address(), answers[i].metrics_address())});
    }
    return absl::OkStatus();
  }

  absl::Status Configure() {
    StagePurpose purpose;
    if (options_.trace) purpose.trace = &*options_.trace;
    ASSIGN_OR_RETURN(const Configured configured,
                     ConfigureStages(experiment_, threads_, fleet_, purpose));
    data_ = configured.data;
    RecordConfigured(configured, &summary_);
    return absl::OkStatus();
  }

  absl::Status ImportInitial() {
    if (!experiment_.has_init()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ModelShares initial, ModelShares::Initial(experiment_));
    return initial.Import(fleet_);
  }

  uint64_t StepsPerEpoch() const {
    const uint64_t batch = experiment_.data().batch_size();
    return (data_.train_samples() + batch - 1) / batch;
  }

  RunPlan Plan() const {
    return {experiment_.epochs(), StepsPerEpoch(), data_.train_samples(), stages_,
            summary_.device()};
  }

  // Does what is left of the epoch, which may have been trained in part or may lack its evaluation.
  absl::Status RunEpoch(uint32_t epoch) {
    absl::Status status;
    fleet_->set_in_epoch(true);
    while (status.ok() && Step() < epoch * StepsPerEpoch()) status = TrainPart(epoch);
    fleet_->set_in_epoch(false);
    if (status.ok() && fleet_->ended_after_step()) status = absl::CancelledError("interrupted");
    if (status.ok() || fleet_->ended_after_step()) {
      const absl::Status told = observer_.OnTrained(epoch);
      if (!told.ok()) status = told;
    }
    RETURN_IF_ERROR(status);
    EpochRecord record;
    {
      absl::MutexLock lock(&events_);
      record = tally_.EpochOf(epoch);
      tally_.EndEpoch();
    }
    if (IsEvaluationDue(experiment_, epoch)) {
      RETURN_IF_ERROR(Evaluate(experiment_, data_, epoch, fleet_, &observer_, &record));
    }
    *summary_.add_epochs() = record;  // counts when it is complete
    return observer_.OnEpoch(record);
  }

  bool IsCheckpointDue(uint64_t step) const {
    const CheckpointsConfig& config = experiment_.checkpoint();
    if (config.every_steps() > 0 && step % config.every_steps() == 0) return true;
    if (step % StepsPerEpoch() != 0 || config.every_epochs() == 0) return false;
    const uint64_t epoch = step / StepsPerEpoch();
    return epoch % config.every_epochs() == 0 || epoch == experiment_.epochs();
  }

  bool WantsCheckpoints() const {
    return experiment_.checkpoint().every_steps() > 0 ||
           experiment_.checkpoint().every_epochs() > 0;
  }

  // Trains the steps up to the next checkpoint or to the epoch's end.
  absl::Status TrainPart(uint32_t epoch) {
    const uint64_t before = Step(), every = experiment_.checkpoint().every_steps();
    uint64_t last = epoch * StepsPerEpoch();
    if (every > 0) last = std::min(last, (before / every + 1) * every);
    absl::Status status = TrainSteps(epoch, before + 1, last);
    if (!status.ok() && !fleet_->ended_after_step()) return status;
    const uint64_t after = Step();
    absl::Status kept = FetchCaptures(experiment_, before, after, fleet_, &observer_);
    if (kept.ok()) kept = TellTrace(before);
    const bool is_due = status.ok() ? IsCheckpointDue(after) : WantsCheckpoints() && after > 0;
    // An interrupted evaluation leaves no stage to ask, so the checkpoint is held before it.
    const bool may_be_due = WantsCheckpoints() && after == epoch * StepsPerEpoch() &&
                            IsEvaluationDue(experiment_, epoch);
    if (kept.ok() && (is_due || may_be_due) && checkpointer_) kept = HoldCheckpoint(epoch);
    if (kept.ok() && is_due && checkpointer_) checkpointer_->WriteHeld();
    if (kept.ok() && !status.ok() && checkpointer_) kept = checkpointer_->Finish();
    return kept.ok() ? status : kept;
  }

  absl::Status TrainSteps(uint32_t epoch, uint64_t first, uint64_t last) {
    TrainRequest request;
    request.set_epoch(epoch);
    request.set_samples(data_.train_samples());
    request.set_first_step(first);
    request.set_last_step(last);
    part_start_ = SteadyTime::Now();
    const absl::Status status = fleet_->TrainOnAll([&](StageClient& stage) {
      return stage.Train(request, [&](const StageEvent& event) {
        if (event.has_trace()) return OnTraceEvent(stage.stage(), event.trace());
        absl::MutexLock lock(&events_);
        return OnTrainEvent(stage, event);
      });
    });
    absl::MutexLock lock(&events_);
    tally_.AddSeconds(SecondsSince(part_start_));
    RETURN_IF_ERROR(status);
    const uint64_t wanted =
        std::min((last - (epoch - 1) * StepsPerEpoch()) * experiment_.data().batch_size(),
                 data_.train_samples());
    if (tally_.step() != last || tally_.epoch_samples() != wanted) {
      return absl::InternalError(absl::StrCat("epoch ", epoch, ": the last stage reported ",
                                              tally_.epoch_samples(), " trained samples of ",
                                              wanted));
    }
    const std::vector<ComputeRecord> compute = tally_.Compute();
    *summary_.mutable_compute() = {compute.begin(), compute.end()};
    return TellTotals(tally_.Totals());
  }

  absl::Status HoldCheckpoint(uint32_t epoch) {
    const std::string& codec_state = experiment_.checkpoint().codec_state();
    const uint64_t step = Step();
    const bool is_epoch_end = step % StepsPerEpoch() == 0;
    CheckpointManifest manifest;
    manifest.set_run(options_.run);
    manifest.set_step(step);
    manifest.set_epoch(epoch);
    manifest.set_steps_per_epoch(StepsPerEpoch());
    manifest.set_build_id(summary_.provenance().build_id());
    manifest.set_experiment(ToYaml(experiment_));
    manifest.set_train_digest(summary_.provenance().train_digest());
    manifest.set_test_digest(summary_.provenance().test_digest());
    RunProgress* progress = manifest.mutable_progress();
    {
      absl::MutexLock lock(&events_);
      tally_.Save(progress);
    }
    *progress->mutable_events() = summary_.events();
    if (options_.measure_record) RETURN_IF_ERROR(options_.measure_record(progress));
    return checkpointer_->Hold(
        std::move(manifest), summary_.epochs(),
        codec_state == "full" || (codec_state == "epoch_end" && is_epoch_end));
  }

  absl::Status OnTrainEvent(const StageClient& stage, const StageEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(events_) {
    if (event.has_step()) {
      tally_.Add(event.step());
      TellRecovered();
      return Own(observer_.OnStep(RecordOf(event.step())));
    }
    if (event.has_stage()) {
      StageReport report = event.stage();
      report.set_stage(static_cast<uint32_t>(stage.stage()));
      RETURN_IF_ERROR(Own(observer_.OnTraffic(TakeTraffic(&report))));
      tally_.Add(report);
      return Own(TellTotals(tally_.Totals(SecondsSince(part_start_))));
    }
    return absl::OkStatus();
  }

  // Must not hold events_, which other stages may need: it asks the stage for its clock.
  absl::Status OnTraceEvent(int stage, const TraceReport& report) {
    if (!tracer_ || !tracer_->Add(stage, report, fleet_)) return absl::OkStatus();
    absl::MutexLock lock(&events_);
    return Own(observer_.OnTrace(tracer_->Upto(tracer_->steps().last())));
  }

  // After the first step behind a checkpoint, reports how long the recovery took.
  void TellRecovered() {
    if (!lost_at_ || summary_.events().empty()) return;
    summary_.mutable_events()->rbegin()->set_seconds(SecondsSince(*lost_at_));
    lost_at_.reset();
  }

  // Marks an observer's failure as the coordinator's own, whichever stage's event led to it.
  absl::Status Own(absl::Status status) {
    if (status.ok()) return status;
    fleet_->Fail({Failure::kCoordinator, Failure::Kind::kError, std::move(status)});
    return absl::CancelledError("the run has failed");
  }

  absl::Status TellTotals(const RunTotals& totals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(events_) {
    *summary_.mutable_boundaries() = {totals.boundaries.begin(), totals.boundaries.end()};
    return observer_.OnTotals(totals);
  }

  // Returns the last step that was trained.
  uint64_t Step() {
    absl::MutexLock lock(&events_);
    return tally_.step();
  }

  const Experiment& experiment_;
  Fleet* fleet_;
  RunObserver& observer_;
  Summary& summary_;
  const RunOptions& options_;
  RestartBudget restarts_;
  // The checkpoint that this generation began with; null: none.
  std::unique_ptr<const FoundCheckpoint> from_;
  bool are_leased_ = false;            // True once the stages of this fleet are.
  std::optional<SteadyTime> lost_at_;  // set from a loss until the run goes on from its checkpoint
  std::vector<int> threads_;           // per stage
  std::vector<RunPlan::Stage> stages_;
  ConfigureResponse data_;  // of the first stage
  absl::Mutex events_;      // held while the event of one stage is handled
  Tally tally_ ABSL_GUARDED_BY(events_);
  SteadyTime part_start_;  // start of the part that is being trained
  std::optional<Checkpointer> checkpointer_;
  std::optional<TraceRecorder> tracer_;  // not set: nothing is traced
  bool has_traced_ = false;              // True if an earlier generation has.
};

}  // namespace

absl::Status RunExperiment(const Experiment& experiment, Fleet* fleet, RunObserver* observer,
                           Summary* summary, const RunOptions& options) {
  summary->set_seed(experiment.seed());
  summary->set_stages(static_cast<uint32_t>(fleet->size()));
  return Runner(experiment, fleet, observer, summary, options).Run();
}

}  // namespace thinwire
