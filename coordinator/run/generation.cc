#include "coordinator/run/generation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/status.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/files/record.h"
#include "coordinator/files/summary.h"
#include "coordinator/run/best.h"
#include "coordinator/run/captures.h"
#include "coordinator/run/early_stop.h"
#include "coordinator/run/evaluation.h"
#include "coordinator/run/initial.h"
#include "coordinator/run/kept_state.h"
#include "coordinator/run/restore.h"
#include "coordinator/run/resumable.h"

namespace thinwire {
namespace {

// Returns the first multiple of `every` after `step`; none for 0.
uint64_t NextMultiple(uint64_t every, uint64_t step) {
  return every == 0 ? std::numeric_limits<uint64_t>::max() : (step / every + 1) * every;
}

// Returns the type of the event that the stages went on with what they had kept.
const char* TypeFor(const std::string& reason) {
  if (reason == kReasonJoins) return kJoined;
  if (reason == kReasonSpeeds) return kDealt;
  return reason == kReasonEnds ? kLeft : kWentOn;
}

// Returns those that carry replicas.
Pipelines Carrying(const Fleet& fleet) {
  Pipelines pipelines = fleet.pipelines();
  if (pipelines.stage_carriers.empty()) pipelines.grid = pipelines.grid.Carrying();
  return pipelines;
}

}  // namespace

absl::Status Generation::Run() {
  const absl::Status status = RunEpochs();
  EndFollowing();
  // The fetch of a checkpoint continues through an interruption, or begins with it.
  const bool is_asked_to_end =
      fleet_.interrupted() || (fleet_.ended_after_step() && !fleet_.leaving());
  if (checkpointer_ && is_asked_to_end) {
    checkpointer_->WriteHeld();
    checkpointer_->Finish().IgnoreError();
  }
  checkpointer_.reset();  // waits, as it calls stages of a fleet that the caller may end
  if (!status.ok() && fleet_.interrupted()) RETURN_IF_ERROR(reports_.WarnOfNoTrace());
  return status;
}

absl::Status Generation::RunEpochs() {
  const TraceSteps* const trace = options_.trace ? &*options_.trace : nullptr;
  std::optional<StageStanding> reported;
  if (start_.loss != nullptr) reported = reports_.standing();
  ASSIGN_OR_RETURN(placed_, PlaceStages(experiment_, trace, reported, &fleet_, &summary_));
  if (!placed_.kept_step) {
    // The state to go on with is written already, so an interruption has nothing to wait for.
    fleet_.set_in_epoch(false);
    if (fleet_.ended_after_step()) return absl::CancelledError("interrupted");
  }
  RETURN_IF_ERROR(Begin());
  RETURN_IF_ERROR(CheckCaptureSteps(experiment_, Plan()));
  RETURN_IF_ERROR(reports_.StartTrace(Plan().steps(), placed_.kept_step.has_value()));
  RETURN_IF_ERROR(observer_.OnStart(Plan()));
  MakeCheckpointer();
  if (placed_.kept_step) RETURN_IF_ERROR(HoldLostCheckpoint());
  Follow();
  while (!is_stopped_ && static_cast<uint32_t>(summary_.epochs_size()) < experiment_.epochs()) {
    RETURN_IF_ERROR(RunEpoch(static_cast<uint32_t>(summary_.epochs_size()) + 1));
  }
  return checkpointer_ ? checkpointer_->Finish() : absl::OkStatus();
}

absl::Status Generation::Begin() {
  if (placed_.kept_step) return GoOnAfter(*placed_.kept_step);
  if (start_.loss != nullptr) RETURN_IF_ERROR(TellLoss(kRestarted, start_.loss->step()));
  return start_.from != nullptr ? RestoreFrom(*start_.from) : BeginAnew();
}

// Goes on with what the stages have kept; so has this process.
absl::Status Generation::GoOnAfter(uint64_t step) {
  const auto& events = summary_.events();
  is_stopped_ = !events.empty() && events.rbegin()->type() == kStopped;
  RunProgress progress;
  reports_.Save(&progress);
  *progress.mutable_epochs() = summary_.epochs();
  reports_.ContinueFrom(progress, step, Carrying(fleet_), start_.lost_at);
  return TellLoss(TypeFor(start_.loss->reason()), step);
}

// Holds the checkpoint of the step that all stand behind, as the one that was held, or being
// written, went with the generation before.
absl::Status Generation::HoldLostCheckpoint() {
  const uint64_t step = reports_.step();
  const bool is_written = start_.from != nullptr && start_.from->manifest.step() == step;
  if (!checkpointer_ || step == 0 || is_written) return absl::OkStatus();
  RETURN_IF_ERROR(HoldCheckpoint(Plan().EpochOf(step)));
  if (IsCheckpointDue(step)) checkpointer_->WriteHeld();
  return absl::OkStatus();
}

absl::Status Generation::TellLoss(const char* type, uint64_t step) {
  RunEvent* const event = summary_.add_events();
  *event = *start_.loss;
  event->set_type(type);
  event->set_step(step);
  event->set_carriers(static_cast<uint32_t>(fleet_.carriers()));
  const Deal& deal = fleet_.grid().deal;
  *event->mutable_deal() = {deal.begin(), deal.end()};
  return observer_.OnEvent(*event);
}

absl::Status Generation::BeginAnew() {
  const RunProgress nothing;
  RETURN_IF_ERROR(SetProgress(nothing, /*step=*/0));
  return experiment_.has_init() ? BeginWithInitial() : absl::OkStatus();
}

absl::Status Generation::BeginWithInitial() {
  ASSIGN_OR_RETURN(Initial initial, GiveInitial(experiment_, &fleet_));
  base_ = std::move(initial.base);
  if (!initial.record) return absl::OkStatus();
  *summary_.mutable_provenance()->mutable_initial() = *std::move(initial.record);
  if (initial.fresh.empty()) return absl::OkStatus();  // else told before stages were there
  return observer_.OnWarning(absl::StrCat("init: ", experiment_.init(), " has nothing for ",
                                          absl::StrJoin(initial.fresh, ", "),
                                          ": these start anew"));
}

absl::Status Generation::RestoreFrom(const FoundCheckpoint& from) {
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
  RETURN_IF_ERROR(Restore(experiment_, from, plan, &fleet_));
  base_.reset();
  if (manifest.has_base()) base_ = BaseNow(manifest.base(), experiment_);
  RETURN_IF_ERROR(LeaveCheckpointsAfter(from));
  return SetProgress(manifest.progress(), manifest.step());
}

// Makes room for the checkpoints that will be written after `from`.
absl::Status Generation::LeaveCheckpointsAfter(const FoundCheckpoint& from) {
  const uint64_t step = from.manifest.step();
  if (!from.is_chosen) return RemoveCheckpointsAfter(options_.checkpoints, step);
  ASSIGN_OR_RETURN(const std::string aside, SetAsideCheckpointsAfter(options_.checkpoints, step));
  if (aside.empty()) return absl::OkStatus();
  return observer_.OnWarning(absl::StrCat("later checkpoints stand in ", aside, " now"));
}

// Checks that the data are those that the run began with, or warns that they are others.
absl::Status Generation::CheckData(const Experiment& then, const FoundCheckpoint& from) {
  Provenance* provenance = summary_.mutable_provenance();
  const auto other = OtherData(then, experiment_, from.manifest, *provenance);
  if (other.ok()) return other->empty() ? absl::OkStatus() : observer_.OnWarning(*other);
  // The summary keeps the digest of the data that was trained on.
  provenance->set_train_digest(from.manifest.train_digest());
  provenance->set_test_digest(from.manifest.test_digest());
  *summary_.mutable_epochs() = from.manifest.progress().epochs();
  *summary_.mutable_boundaries() = from.manifest.progress().boundaries();
  if (from.manifest.progress().has_replicas()) {
    *summary_.mutable_replicas() = from.manifest.progress().replicas();
  }
  return Annotated(other.status(), from.path);
}

absl::Status Generation::SetProgress(const RunProgress& progress, uint64_t step) {
  if (options_.cut_record) RETURN_IF_ERROR(options_.cut_record(progress));
  reports_.ContinueFrom(progress, step, Carrying(fleet_), start_.lost_at);
  return absl::OkStatus();
}

void Generation::MakeCheckpointer() {
  if (options_.checkpoints.empty() || !WantsCheckpoints()) return;
  checkpointer_.emplace(
      CheckpointerOptions{
          options_.checkpoints, experiment_.checkpoint().keep(), options_.beside,
          start_.from != nullptr ? start_.from->manifest.progress().epochs_kept() : EpochsKept()},
      &fleet_,
      [this](const CheckpointManifest& manifest) { reports_.OnCheckpoint(manifest, &fleet_); });
}

uint64_t Generation::StepsPerEpoch() const {
  const uint64_t batch = experiment_.data().batch_size();
  return (placed_.data.train_samples() + batch - 1) / batch;
}

RunPlan Generation::Plan() const {
  return {experiment_.epochs(),
          StepsPerEpoch(),
          placed_.data.train_samples(),
          placed_.stages,
          static_cast<uint32_t>(fleet_.carriers()),
          fleet_.pipelines().stage_carriers,
          summary_.device(),
          TrainingSteps(experiment_, StepsPerEpoch())};
}

// Does what is left of the epoch, which may have been trained in part or may lack its evaluation.
absl::Status Generation::RunEpoch(uint32_t epoch) {
  fleet_.set_in_epoch(true);
  absl::Status status = EvaluateStep(epoch);
  while (status.ok() && !is_stopped_ && reports_.step() < Plan().EndOf(epoch)) {
    status = TrainPart(epoch);
    if (status.ok()) status = EvaluateStep(epoch);
  }
  fleet_.set_in_epoch(false);
  if (status.ok() && fleet_.ended_after_step()) status = absl::CancelledError("interrupted");
  const bool ends = status.ok() || (fleet_.ended_after_step() && !AllGoOn() && !OthersGoOn());
  if (options_.save_model && ends) {
    const absl::Status saved = options_.save_model();
    if (!saved.ok()) status = saved;
  }
  RETURN_IF_ERROR(status);
  EpochRecord record = reports_.EpochSoFar(epoch);
  if (is_stopped_) {
    *record.mutable_test() = record.evaluations().rbegin()->test();
  } else if (IsEvaluationDue(experiment_, epoch)) {
    ASSIGN_OR_RETURN(const EvaluationRecord after, Evaluate(experiment_, placed_.data, epoch,
                                                            reports_.step(), &fleet_, &observer_));
    record.set_evaluation_seconds(record.evaluation_seconds() + after.seconds());
    if (after.has_test()) *record.mutable_test() = after.test();
    RETURN_IF_ERROR(KeepIfBest(after, record));
    RETURN_IF_ERROR(StopIfNoBetter(record));
  }
  reports_.EndEpoch();
  *summary_.add_epochs() = record;  // counts when it is complete
  return observer_.OnEpoch(record);
}

// Evaluates after the last step, if it is one of the epoch after which that is due and has not been
// done: a checkpoint of a step lacks its evaluation. An interruption cancels it.
absl::Status Generation::EvaluateStep(uint32_t epoch) {
  const uint64_t step = reports_.step();
  const bool is_due = step > (epoch - 1) * StepsPerEpoch() && step > reports_.evaluated_step() &&
                      IsEvaluationDueAt(experiment_, step, Plan());
  if (!is_due || fleet_.ended_after_step()) return absl::OkStatus();
  fleet_.set_in_epoch(false);
  const absl::StatusOr<EvaluationRecord> evaluation =
      Evaluate(experiment_, placed_.data, epoch, step, &fleet_, &observer_);
  fleet_.set_in_epoch(true);
  RETURN_IF_ERROR(evaluation.status());
  RETURN_IF_ERROR(KeepIfBest(*evaluation, reports_.EpochSoFar(epoch)));
  reports_.Add(*evaluation);
  RETURN_IF_ERROR(observer_.OnEvaluated(*evaluation));
  return StopIfNoBetter(reports_.EpochSoFar(epoch));
}

// Keeps a checkpoint of the step that was evaluated last, if the experiment wants the best and this
// is better than all before it. `before` has those after earlier steps of its epoch.
absl::Status Generation::KeepIfBest(const EvaluationRecord& latest, const EpochRecord& before) {
  const CheckpointsConfig& config = experiment_.checkpoint();
  if (!checkpointer_ || !config.has_best()) return absl::OkStatus();
  const bool is_best =
      IsBest(config.best(), latest.test(), summary_.epochs(), before.evaluations());
  return is_best ? checkpointer_->WriteBest(latest.step()) : absl::OkStatus();
}

// Ends the run if the experiment wants that after its last evaluation, which is the last of
// `latest`, and there is more to come. The checkpoint of the step is written, as that of the last.
absl::Status Generation::StopIfNoBetter(const EpochRecord& latest) {
  const uint64_t step = reports_.step();
  if (!experiment_.has_early_stop() || step == Plan().steps()) {
    return absl::OkStatus();
  }
  const std::optional<std::string> why =
      WhyToStop(experiment_.early_stop(), summary_.epochs(), latest);
  if (!why) return absl::OkStatus();
  is_stopped_ = true;
  if (checkpointer_) checkpointer_->WriteHeld();
  RunEvent* const event = summary_.add_events();
  event->set_type(kStopped);
  event->set_time(UtcNow());
  event->set_step(step);
  event->set_standstill(*why);
  return observer_.OnEvent(*event);
}

bool Generation::IsCheckpointDue(uint64_t step) const {
  const CheckpointsConfig& config = experiment_.checkpoint();
  if (config.every_steps() > 0 && step % config.every_steps() == 0) return true;
  const uint32_t epoch = Plan().EpochOf(step);
  if (step != Plan().EndOf(epoch) || config.every_epochs() == 0) return false;
  return epoch % config.every_epochs() == 0 || epoch == experiment_.epochs();
}

bool Generation::AllGoOn() const {
  const std::optional<Failure> leaving = fleet_.leaving();
  return start_.keeps_state && leaving && leaving->kind != Failure::Kind::kEnds;
}

bool Generation::OthersGoOn() const {
  return start_.keeps_state && fleet_.leaving() && fleet_.grid().Carrying().replicas > 1;
}

bool Generation::WantsCheckpoints() const {
  const CheckpointsConfig& config = experiment_.checkpoint();
  return config.every_steps() > 0 || config.every_epochs() > 0 || config.has_best();
}

// Trains the steps up to the next checkpoint, the next evaluation or the epoch's end.
absl::Status Generation::TrainPart(uint32_t epoch) {
  const uint64_t before = reports_.step();
  const uint64_t last =
      std::min({Plan().EndOf(epoch), NextMultiple(experiment_.checkpoint().every_steps(), before),
                NextMultiple(experiment_.evaluation().every_steps(), before)});
  absl::Status status = TrainSteps(epoch, before + 1, last);
  if (!status.ok() && !fleet_.ended_after_step()) return status;
  const uint64_t after = reports_.step();
  absl::Status kept = FetchCaptures(experiment_, before, after, &fleet_, &observer_);
  if (kept.ok()) kept = reports_.TellTrace(before);
  const bool is_due =
      status.ok() ? IsCheckpointDue(after) : WantsCheckpoints() && after > 0 && !AllGoOn();
  // An interrupted evaluation leaves no stage to ask, so the checkpoint is held before it.
  const bool is_evaluated = (after == Plan().EndOf(epoch) && IsEvaluationDue(experiment_, epoch)) ||
                            IsEvaluationDueAt(experiment_, after, Plan());
  const bool may_be_due = WantsCheckpoints() && is_evaluated;
  if (kept.ok() && (is_due || may_be_due) && checkpointer_) kept = HoldCheckpoint(epoch);
  if (kept.ok() && is_due && checkpointer_) checkpointer_->WriteHeld();
  if (kept.ok() && !status.ok() && checkpointer_) kept = checkpointer_->Finish();
  return kept.ok() ? status : kept;
}

absl::Status Generation::TrainSteps(uint32_t epoch, uint64_t first, uint64_t last) {
  TrainRequest request;
  request.set_epoch(epoch);
  request.set_samples(placed_.data.train_samples());
  request.set_first_step(first);
  request.set_last_step(last);
  reports_.BeginPart();
  const absl::Status status = fleet_.TrainOnAll([&](StageClient& stage) {
    return stage.Train(request, [&](const StageEvent& event) -> absl::Status {
      RETURN_IF_ERROR(reports_.Take(stage.server(), event, &fleet_));
      if (followers_ && event.has_step()) followers_->Check(event.step().step());
      return absl::OkStatus();
    });
  });
  reports_.EndPart();
  RETURN_IF_ERROR(status);
  const uint64_t samples =
      std::min((last - (epoch - 1) * StepsPerEpoch()) * experiment_.data().batch_size(),
               placed_.data.train_samples());
  return reports_.CheckPart(epoch, last, samples);
}

void Generation::Follow() {
  if (!fleet_.Follows(fleet_.size() - 1) || fleet_.ended_after_step()) return;
  followers_.emplace(
      &fleet_, Followers::Start{reports_.step(), placed_.sources, MostBehind()}, Plan(),
      [this] { return reports_.step(); },
      [this](int server, const StageEvent& event) {
        return reports_.Take(server, event, &fleet_);
      });
}

// Takes it that one that follows will be sent in a step what each machine was sent so far. A
// quarter of the memory that the server with least has left may go to that.
uint64_t Generation::MostBehind() const {
  const ReplicasRecord& replicas = summary_.replicas();
  const DirectionRecord& sent =
      replicas.average().messages() > 0 ? replicas.average() : replicas.contributions();
  const double receivers = std::max(1.0, static_cast<double>(replicas.count()) - 1);
  const double steps = std::max(1.0, static_cast<double>(reports_.step()));
  const double of_step = std::max(1.0, static_cast<double>(sent.wire_bytes()) / receivers / steps);
  return static_cast<uint64_t>(std::clamp(
      static_cast<double>(placed_.least_memory_bytes) / 4 / of_step, 2.0, kMostStepsBehind / 2.0));
}

void Generation::EndFollowing() {
  if (!followers_) return;
  if (AllGoOn() && followers_->Await(reports_.step())) fleet_.SetCaughtUp();
  followers_.reset();
}

absl::Status Generation::HoldCheckpoint(uint32_t epoch) {
  const std::string& codec_state = experiment_.checkpoint().codec_state();
  const uint64_t step = reports_.step();
  const bool is_epoch_end = step == Plan().EndOf(epoch);
  CheckpointManifest manifest;
  manifest.set_run(options_.run);
  manifest.set_step(step);
  manifest.set_epoch(epoch);
  manifest.set_steps_per_epoch(StepsPerEpoch());
  manifest.set_build_id(summary_.provenance().build_id());
  manifest.set_experiment(ToYaml(experiment_));
  manifest.set_train_digest(summary_.provenance().train_digest());
  manifest.set_test_digest(summary_.provenance().test_digest());
  if (base_) *manifest.mutable_base() = *base_;
  RunProgress* progress = manifest.mutable_progress();
  reports_.Save(progress);
  *progress->mutable_events() = summary_.events();
  if (options_.measure_record) RETURN_IF_ERROR(options_.measure_record(progress));
  return checkpointer_->Hold(std::move(manifest), summary_.epochs(),
                             codec_state == "full" || (codec_state == "epoch_end" && is_epoch_end));
}

}  // namespace thinwire
