#include "stage_server/stage/executor.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "schedule/schedule.h"
#include "stage_server/stage/batch_parts.h"
#include "stage_server/stage/text_request.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Returns the request for samples `range`: in training only slice `slice` where the schedule has
// slices.
FeedRequest RequestOf(const StageSpec& spec, const Work& work, const SampleRange& range,
                      int slice) {
  FeedRequest request{work.phase, work.epoch, range};
  if (IsTrainingPass(work.phase) && spec.slices() > 1) {
    const int64_t first = spec.FirstPosition(slice);
    request.positions = {first, first + spec.slice_positions[slice]};
  }
  return request;
}

// Returns the steps that the request names, or those of the epoch where it names none.
absl::StatusOr<EpochSpec> StepsOf(const TrainRequest& request, const StageSpec& spec) {
  const auto samples = static_cast<int64_t>(request.samples());
  const auto steps = static_cast<uint64_t>(NumBatches(samples, spec.batch_size));
  const uint64_t before = (request.epoch() - 1) * steps;
  EpochSpec epoch = EpochOf(spec, request.epoch(), samples);
  epoch.first_step = request.has_first_step() ? request.first_step() : before + 1;
  epoch.last_step = request.has_last_step() ? request.last_step() : before + steps;
  if (before < epoch.first_step && epoch.first_step <= epoch.last_step &&
      epoch.last_step <= before + steps) {
    return epoch;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("first_step ", epoch.first_step, ", last_step ", epoch.last_step, ": want ",
                   before + 1, " to ", before + steps, ", the steps of epoch ", request.epoch()));
}

// Returns the mean loss of the labels that are not ignored; 0 if all are.
double MeanOf(const LossSums& sums) {
  return sums.counted == 0 ? 0 : sums.loss / static_cast<double>(sums.counted);
}

// Stores the sums over labels of `spec` in a StepReport or an EvaluationReport.
template <typename Report>
void ReportLosses(const StageSpec& spec, const LossSums& sums, Report* report) {
  report->set_loss(MeanOf(sums));
  report->set_labels(sums.counted);
  if (spec.score_unit == 0) report->set_correct(sums.correct);
}

// Starts one recalibration for each chunk of the stage.
absl::StatusOr<std::vector<std::unique_ptr<Recalibration>>> StartRecalibrations(LocalStage* stage) {
  std::vector<std::unique_ptr<Recalibration>> all;
  for (int chunk = 0; chunk < stage->spec().chunks(); ++chunk) {
    ASSIGN_OR_RETURN(auto one, stage->StartRecalibration(chunk));
    all.push_back(std::move(one));
  }
  return all;
}

// Returns what the backward passes among the actions of one replica are of, in their order.
std::vector<SwapPass> BackwardsOf(const StageSpec& spec, const Work& work,
                                  const std::vector<Action>& actions) {
  const int count = MicrobatchesOf(spec, work.batch_size);
  const int first = work.replica * spec.microbatches;
  std::vector<SwapPass> passes;
  for (const Action& action : actions) {
    const bool goes_back =
        action.kind == Action::Kind::kBackward || action.kind == Action::Kind::kBackwardInput;
    if (!goes_back) continue;
    const int microbatch = first + action.microbatch / spec.slices();
    const int slice = action.microbatch % spec.slices();
    passes.push_back({action.chunk, MicrobatchRange(work.batch_size, count, microbatch).first,
                      spec.slices() > 1 ? spec.FirstPosition(slice) : 0});
  }
  return passes;
}

// Returns whether no action behind number `i` adds to the gradients of its chunk.
bool EndsGradients(const std::vector<Action>& actions, size_t i) {
  if (actions[i].kind == Action::Kind::kForward) return false;
  return std::none_of(actions.begin() + static_cast<std::ptrdiff_t>(i) + 1, actions.end(),
                      [&](const Action& later) {
                        return later.chunk == actions[i].chunk &&
                               later.kind != Action::Kind::kForward;
                      });
}

}  // namespace

absl::Status Executor::Train(const TrainRequest& request,
                             const std::function<void(const StepReport&)>& on_step) {
  RETURN_IF_ERROR(stage_->CheckConnected());
  const StageSpec& spec = stage_->spec();
  const auto samples = static_cast<int64_t>(request.samples());
  const int64_t steps = NumBatches(samples, spec.batch_size);
  ASSIGN_OR_RETURN(const EpochSpec epoch, StepsOf(request, spec));
  const auto before = static_cast<int64_t>(request.epoch() - 1) * steps;
  const int64_t begin = static_cast<int64_t>(epoch.first_step) - 1 - before;
  const int64_t end = static_cast<int64_t>(epoch.last_step) - before;
  StepBeginsNow();
  stage_->StartEpoch(epoch);
  Work work;
  work.phase = PHASE_TRAIN;
  work.epoch = request.epoch();
  const std::vector<SampleRange> batches = BatchesOf(
      {begin * spec.batch_size, std::min(end * spec.batch_size, samples)}, spec.batch_size);
  std::vector<std::vector<SampleRange>> parts;
  for (const SampleRange& batch : batches) {
    for (auto& part : PartsOf(spec, batch)) parts.push_back(std::move(part));
  }
  Announce(work, parts);
  for (int64_t i = begin; i < end; ++i) {
    const SampleRange& batch = batches[i - begin];
    work.step = static_cast<uint64_t>(before + i + 1);
    // All stages end behind the same step, so no message is missing; what waits here still leaves.
    if (!gate_.Enter(work.step)) return EndSteps();
    StepReport report;
    absl::Status status = TrainStep(work, batch, steps, &report);
    if (!status.ok()) return Failed(status);
    const SteadyTime now = SteadyTime::Now();
    report.set_seconds(absl::ToDoubleSeconds(now - step_began_));
    PlannedSlice slice = StepSlice(spec, work, "step");
    if (slice.trace != nullptr) slice.Add(step_began_, now);
    spec.patience->StepTook(now - step_began_);
    step_began_ = now;
    if (i + 1 == end) {
      // A checkpoint may follow, and the state of feedback may be read after a flush only.
      const absl::Status ended = EndSteps();
      if (!ended.ok()) return Failed(ended);
    }
    // Published first, as `on_step` may report these counts.
    Publish(work.step);
    on_step(report);
  }
  return absl::OkStatus();
}

absl::Status Executor::TrainStep(const Work& of_epoch, const SampleRange& batch,
                                 int64_t steps_per_epoch, StepReport* report) {
  const StageSpec& spec = stage_->spec();
  Work work = of_epoch;
  work.batch_size = batch.last - batch.first;
  work.compress = work.epoch > spec.warmup_epochs && work.step > spec.warmup_steps;
  report->set_epoch(work.epoch);
  report->set_step(work.step);
  report->set_samples(work.batch_size);
  report->set_learning_rate(LearningRate(lr_, work.epoch, work.step, steps_per_epoch));
  if (spec.agrees_on_updates) return TrainAgreed(work, batch, report);
  if (!spec.replicas.trains_locally()) {
    RETURN_IF_ERROR(Accumulate(work, batch, report));
    return stage_->Update(work, report->learning_rate());
  }
  ASSIGN_OR_RETURN(const LossSums sums,
                   replicas_.TrainLocally(work, AccumulateOf(batch), steps_per_epoch, report));
  ReportLosses(stage_->spec(), sums, report);
  return absl::OkStatus();
}

absl::Status Executor::TrainAgreed(const Work& work, const SampleRange& batch, StepReport* report) {
  if (!standing_) {
    standing_.emplace();
    standing_->set_stage(static_cast<uint32_t>(stage_->spec().stage));
    standing_->set_step(work.step - 1);
  }
  absl::Status status = Accumulate(work, batch, report);
  if (!status.ok()) {
    // Others may do the step again with what is here, whatever happened to it.
    if (!stage_->DropStep().ok()) standing_.reset();
    return status;
  }
  ready_ = {work, report->learning_rate()};
  standing_->set_is_ready(true);
  ASSIGN_OR_RETURN(const double squares, stage_->AgreeOnUpdate(work, report));
  report->set_squares(squares);
  return UpdateReady(squares);
}

absl::Status Executor::UpdateReady(double squares) {
  const ReadyStep ready = *std::exchange(ready_, std::nullopt);
  standing_->set_is_ready(false);
  const absl::Status updated = stage_->UpdateAgreed(ready.work, ready.learning_rate, squares);
  if (!updated.ok()) {
    standing_.reset();  // some parameters may have been updated
    return updated;
  }
  standing_->set_step(ready.work.step);
  standing_->set_squares(squares);
  return absl::OkStatus();
}

void Executor::StandAt(const StageStanding& standing) {
  standing_ = standing;
  standing_->set_stage(static_cast<uint32_t>(stage_->spec().stage));
  standing_->set_is_ready(false);
  StartAfter(standing.step());
}

absl::Status Executor::DropReady() {
  if (!std::exchange(ready_, std::nullopt)) return absl::OkStatus();
  standing_->set_is_ready(false);
  return stage_->DropStep();
}

absl::Status Executor::Reach(const StageStanding& wanted) {
  if (standing_ && standing_->step() + 1 == wanted.step() && ready_) {
    RETURN_IF_ERROR(UpdateReady(wanted.squares()));
  }
  if (standing_ && standing_->step() == wanted.step()) return DropReady();
  return absl::FailedPreconditionError(
      absl::StrCat("stage ", stage_->spec().stage, " stands ",
                   standing_ ? absl::StrCat("after step ", standing_->step()) : "before any step",
                   ", want after step ", wanted.step()));
}

absl::Status Executor::EndSteps() {
  RETURN_IF_ERROR(replicas_.Finish());
  return stage_->FlushSends(stage_->spec().patience->Deadline());
}

absl::StatusOr<StepReport> Executor::Gradients(const GradientsRequest& request) {
  RETURN_IF_ERROR(stage_->CheckConnected());
  const StageSpec& spec = stage_->spec();
  const auto samples = static_cast<int64_t>(request.samples());
  const int64_t first = static_cast<int64_t>(request.batch() - 1) * spec.batch_size;
  const SampleRange batch{first, std::min(first + spec.batch_size, samples)};
  Work work;
  work.phase = PHASE_TRAIN;
  work.epoch = request.epoch();
  work.step = (request.epoch() - 1) * NumBatches(samples, spec.batch_size) + request.batch();
  work.batch_size = batch.last - batch.first;
  work.compress = request.compressed();
  StepReport report;
  report.set_epoch(request.epoch());
  report.set_step(work.step);
  report.set_samples(work.batch_size);
  EpochSpec epoch = EpochOf(spec, request.epoch(), samples);
  epoch.first_step = epoch.last_step = work.step;
  epoch.goes_on = false;
  stage_->StartEpoch(epoch);
  Announce(work, PartsOf(spec, batch));
  const absl::Status status = AccumulateOnly(work, batch, &report);
  if (!status.ok()) return Failed(status);
  return report;
}

absl::Status Executor::AccumulateOnly(const Work& work, const SampleRange& batch,
                                      StepReport* report) {
  RETURN_IF_ERROR(stage_->ClearGradients());
  // A forward pass in training changes running statistics only, which Restore puts back.
  ASSIGN_OR_RETURN(const auto statistics, StartRecalibrations(stage_));
  absl::Status status = Accumulate(work, batch, report);
  if (status.ok()) status = stage_->FlushSends(stage_->spec().patience->Deadline());
  for (const auto& chunk : statistics) status.Update(chunk->Restore());
  return status;
}

void Executor::Announce(const Work& work, const std::vector<std::vector<SampleRange>>& passes) {
  if (feed_ == nullptr) return;
  const StageSpec& spec = stage_->spec();
  std::vector<FeedRequest> requests;
  for (const std::vector<SampleRange>& parts : passes) {
    const int count = static_cast<int>(parts.size());
    if (count == 0) continue;
    for (const Action& forward : Forwards(spec.stages(), count, spec.chunks())) {
      if (!ReadsSamples(spec, forward.chunk)) continue;
      const int slices = IsTrainingPass(work.phase) ? spec.slices() : 1;
      for (int slice = 0; slice < slices; ++slice) {
        requests.push_back(RequestOf(spec, work, parts[forward.microbatch], slice));
      }
    }
  }
  feed_->Announce(requests);
}

absl::Status Executor::Accumulate(Work work, const SampleRange& batch, StepReport* report) {
  const StageSpec& spec = stage_->spec();
  LossSums sums;
  if (spec.replicas.count == 1) {
    ASSIGN_OR_RETURN(sums, AccumulateReplica(work, batch));
  } else {
    ASSIGN_OR_RETURN(sums, replicas_.Average(work, AccumulateOf(batch), report));
  }
  ReportLosses(stage_->spec(), sums, report);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Executor::LossLabels(const Work& work, const SampleRange& batch) {
  if (feed_ == nullptr || !stage_->spec().last()) return 0;
  SampleRange of_mean = batch;
  if (work.loss_samples > 0) {
    for (int replica = 0; replica < work.replica; ++replica) {
      of_mean.first += SamplesOf(stage_->spec(), work.batch_size, replica);
    }
    of_mean.last = of_mean.first + work.loss_samples;
  }
  return feed_->CountLabels({work.phase, work.epoch, of_mean});
}

ReplicaSteps::Accumulate Executor::AccumulateOf(const SampleRange& batch) {
  return [this, batch](const Work& work) { return AccumulateReplica(work, batch); };
}

absl::StatusOr<LossSums> Executor::AccumulateReplica(Work work, const SampleRange& batch) {
  const StageSpec& spec = stage_->spec();
  const int count = MicrobatchesOf(spec, work.batch_size);
  const int first = work.replica * spec.microbatches;
  ASSIGN_OR_RETURN(work.loss_labels, LossLabels(work, batch));
  work.microbatches = std::clamp(count - first, 0, spec.microbatches);
  std::vector<Action> actions;
  if (work.microbatches > 0) {
    actions = StageActions(spec.schedule, spec.stage, spec.stages(), work.microbatches,
                           spec.chunks(), spec.slices());
  }
  stage_->ExpectBackwards(BackwardsOf(spec, work, actions));
  for (size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    RETURN_IF_ERROR(Stopped());
    work.chunk = action.chunk;
    work.ends_gradients = EndsGradients(actions, i);
    const int microbatch = first + action.microbatch / spec.slices();
    const SampleRange part = MicrobatchRange(work.batch_size, count, microbatch);
    work.microbatch = first * spec.slices() + action.microbatch;
    work.samples = part.last - part.first;
    work.first_sample = part.first;
    work.deadline = spec.patience->Deadline();
    switch (action.kind) {
      case Action::Kind::kForward:
        RETURN_IF_ERROR(ForwardOne(work, batch, part).status());
        break;
      case Action::Kind::kBackward:
      case Action::Kind::kBackwardInput:
        RETURN_IF_ERROR(stage_->Backward(work));
        break;
      case Action::Kind::kBackwardWeight:
        RETURN_IF_ERROR(stage_->BackwardWeights(work));
        break;
    }
    RETURN_IF_ERROR(MeasureMemory());
    spec.patience->Advance();
  }
  RETURN_IF_ERROR(Stopped());
  RETURN_IF_ERROR(stage_->SumTiedGradients(work));
  RETURN_IF_ERROR(stage_->SumBasisGradients(work));
  return stage_->TakeLosses(work);
}

absl::Status Executor::MeasureMemory() {
  const StageSpec& spec = stage_->spec();
  if (spec.memory == nullptr) return absl::OkStatus();
  return Annotated(spec.memory->Measure(), absl::StrCat("stage ", spec.stage));
}

absl::StatusOr<LossSums> Executor::ForwardOne(Work work, const SampleRange& batch,
                                              const SampleRange& part) {
  const StageSpec& spec = stage_->spec();
  std::optional<Samples> samples;
  if (feed_ != nullptr && ReadsSamples(spec, work.chunk)) {
    ScopedTimer timer(&stage_->activity().data, MicrobatchSlice(spec, work, "data"));
    const int slice = static_cast<int>(work.microbatch) % spec.slices();
    ASSIGN_OR_RETURN(samples,
                     feed_->Take(RequestOf(
                         spec, work, {batch.first + part.first, batch.first + part.last}, slice)));
  }
  return stage_->Forward(work, samples);
}

absl::StatusOr<EvaluationReport> Executor::Evaluate(const EvaluateRequest& request) {
  RETURN_IF_ERROR(stage_->CheckConnected());
  const ActivitySeconds before = stage_->activity();
  const auto samples = static_cast<int64_t>(request.samples());
  Work work;
  work.replica = stage_->spec().carried().first;
  work.epoch = request.epoch();
  work.compress = request.compressed();
  work.phase = work.compress ? PHASE_EVALUATE_COMPRESSED : PHASE_EVALUATE_UNCOMPRESSED;
  if (request.calibrates()) work.phase = PHASE_CALIBRATE;
  const absl::StatusOr<LossSums> sums =
      request.recalibration_samples() > 0
          ? RecalibratedPass(work, request)
          : Pass(work, samples, [](int) { return absl::OkStatus(); });
  stage_->RestoreActivity(before);  // evaluation leaves no trace in the training counters
  if (!sums.ok()) return Failed(sums.status());
  const PredictedLabels found = stage_->TakePredicted();
  const StageSpec& spec = stage_->spec();
  EvaluationReport report;
  ReportLosses(spec, *sums, &report);
  report.set_samples(request.samples());
  *report.mutable_confusion() = {found.confusion.begin(), found.confusion.end()};
  *report.mutable_predictions() = {found.predictions.begin(), found.predictions.end()};
  *report.mutable_scores() = {found.scores.begin(), found.scores.end()};
  if (spec.model.is_language()) report.set_perplexity(std::exp(report.loss()));
  return report;
}

absl::StatusOr<GenerateResponse> Executor::Generate(const GenerateRequest& request) {
  RETURN_IF_ERROR(stage_->CheckConnected());
  const StageSpec& spec = stage_->spec();
  RETURN_IF_ERROR(CheckText(request, spec.model, stage_->positions()));
  Work work;
  work.replica = spec.carried().first;
  work.phase = PHASE_GENERATE;
  work.epoch = 1;
  work.step = request.step();
  work.batch_size = work.samples = 1;
  work.first_position = request.first_position();
  work.compress = request.compressed();
  work.deadline = spec.patience->Deadline();
  const uint64_t bytes_before = stage_->EvaluationWireBytes();
  const absl::StatusOr<std::vector<float>> logits = stage_->Generate(work, request.ids());
  if (!logits.ok()) return Failed(logits.status());
  GenerateResponse response;
  response.set_wire_bytes(stage_->EvaluationWireBytes() - bytes_before);
  if (!spec.last()) return response;
  ASSIGN_OR_RETURN(const int32_t id,
                   Annotated(DrawToken(request, *logits), absl::StrCat("stage ", spec.stage)));
  response.set_id(id);
  return response;
}

absl::StatusOr<LossSums> Executor::Pass(Work work, int64_t samples,
                                        const std::function<absl::Status(int chunk)>& after_batch) {
  const StageSpec& spec = stage_->spec();
  const std::vector<SampleRange> batches = BatchesOf({0, samples}, spec.batch_size);
  LossSums sums;
  Announce(work, {batches});
  const int count = static_cast<int>(batches.size());
  for (const Action& forward : Forwards(spec.stages(), count, spec.chunks())) {
    RETURN_IF_ERROR(Stopped());
    const SampleRange& batch = batches[forward.microbatch];
    work.chunk = forward.chunk;
    work.step = static_cast<uint64_t>(forward.microbatch) + 1;
    work.batch_size = work.samples = batch.last - batch.first;
    work.deadline = spec.patience->Deadline();
    ASSIGN_OR_RETURN(const LossSums one, ForwardOne(work, batch, {0, work.samples}));
    spec.patience->Advance();
    RETURN_IF_ERROR(after_batch(work.chunk));
    sums.loss += one.loss;
    sums.correct += one.correct;
    sums.counted += one.counted;
  }
  work.step = static_cast<uint64_t>(count);
  RETURN_IF_ERROR(stage_->FinishEvaluation(work));
  return sums;
}

absl::StatusOr<LossSums> Executor::RecalibratedPass(Work work, const EvaluateRequest& request) {
  ASSIGN_OR_RETURN(const auto recalibrations, StartRecalibrations(stage_));
  const auto passes = [&]() -> absl::StatusOr<LossSums> {
    work.phase = PHASE_RECALIBRATE;
    RETURN_IF_ERROR(
        Pass(work, static_cast<int64_t>(request.recalibration_samples()), [&](int chunk) {
          return recalibrations[chunk]->AddBatch();
        }).status());
    for (const auto& chunk : recalibrations) RETURN_IF_ERROR(chunk->Apply());
    work.phase = PHASE_EVALUATE_RECALIBRATED;
    return Pass(work, static_cast<int64_t>(request.samples()),
                [](int) { return absl::OkStatus(); });
  };
  const absl::StatusOr<LossSums> sums = passes();
  absl::Status status = sums.status();
  for (const auto& chunk : recalibrations) status.Update(chunk->Restore());
  if (!status.ok()) return status;
  return sums;
}

absl::Status Executor::Failed(const absl::Status& status) {
  stage_->CloseLinks(status);
  stage_->Abandon();
  // What ended the run has caused the errors that followed.
  const absl::Status stopped = Stopped();
  return stopped.ok() ? status : stopped;
}

void Executor::Stop(const absl::Status& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stop_.ok()) stop_ = reason;
  }
  // A step that is held begins now, and ends with the reason at its first action.
  gate_.Open();
  stage_->CloseLinks(reason);
}

absl::Status Executor::Stopped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stop_;
}

void Executor::Publish(uint64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  published_ = stage_->activity();
  last_step_ = step;
}

ActivitySeconds Executor::activity() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return published_;
}

uint64_t Executor::last_step() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_step_;
}

}  // namespace thinwire
