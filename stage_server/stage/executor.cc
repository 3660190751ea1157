#include "stage_server/stage/executor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "nn/sampling.h"
#include "schedule/schedule.h"
#include "stage_server/replicas/rounds.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Returns the number of microbatches of a batch of so many samples.
int MicrobatchesOf(const StageSpec& spec, int64_t samples) {
  return static_cast<int>(std::min<int64_t>(spec.batch_microbatches(), samples));
}

// Divides the part of `batch`, a range of the data set, that is carried here into the microbatches
// of each replica. Of a small batch the last replicas may have fewer microbatches, or none.
std::vector<std::vector<SampleRange>> PartsOf(const SampleRange& batch, const StageSpec& spec) {
  const int64_t samples = batch.last - batch.first;
  const int count = MicrobatchesOf(spec, samples);
  const ReplicaRange carried = spec.carried();
  std::vector<std::vector<SampleRange>> parts(static_cast<size_t>(carried.size()));
  for (int m = 0; m < count; ++m) {
    const int replica = m / spec.microbatches;
    if (!carried.has(replica)) continue;
    const SampleRange part = MicrobatchRange(samples, count, m);
    parts[static_cast<size_t>(replica - carried.first)].push_back(
        {batch.first + part.first, batch.first + part.last});
  }
  return parts;
}

// Returns the number of samples that a replica has of a batch of so many.
int64_t SamplesOf(const StageSpec& spec, int64_t batch_size, int replica) {
  const int count = MicrobatchesOf(spec, batch_size);
  const int first = std::min(replica * spec.microbatches, count);
  const int end = std::min(first + spec.microbatches, count);
  if (first == end) return 0;
  return MicrobatchRange(batch_size, count, end - 1).last -
         MicrobatchRange(batch_size, count, first).first;
}

std::vector<SampleRange> BatchesOf(const SampleRange& all, int64_t batch_size) {
  std::vector<SampleRange> batches;
  for (int64_t first = all.first; first < all.last; first += batch_size) {
    batches.push_back({first, std::min(first + batch_size, all.last)});
  }
  return batches;
}

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

SamplingSpec SamplingFrom(const Sampling& sampling) {
  SamplingSpec spec;
  spec.temperature = sampling.temperature();
  spec.top_k = sampling.top_k();
  spec.top_p = sampling.has_top_p() ? sampling.top_p() : 1;
  return spec;
}

// Returns the logits of the tokens that may be drawn.
absl::Span<const float> Drawable(const std::vector<float>& logits, const Sampling& sampling) {
  const auto all = absl::MakeConstSpan(logits);
  return sampling.vocabulary() > 0 ? all.subspan(0, sampling.vocabulary()) : all;
}

// Checks a request; `positions` is the number of positions of the text so far.
absl::Status CheckText(const GenerateRequest& request, const Model& model, int64_t positions) {
  if (!model.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", model.name, " takes no tokens: there is no text to generate"));
  }
  const int64_t first = request.first_position(), room = model.positions - first;
  if (first != 0 && first != positions) {
    return absl::FailedPreconditionError(absl::StrCat("first_position: ", first, ", want 0 or ",
                                                      positions, ", the positions so far"));
  }
  if (request.ids_size() < 1 || request.ids_size() > room) {
    return absl::InvalidArgumentError(absl::StrCat("ids: ", request.ids_size(), " from position ",
                                                   first, ", want 1 to ", room,
                                                   ", for a context of ", model.positions));
  }
  for (const int32_t id : request.ids()) {
    if (id >= 0 && id < model.classes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ids: ", id, ", want 0 to ", model.classes - 1, ", the model's vocabulary"));
  }
  if (request.step() < 1) return absl::InvalidArgumentError("step: 0, want tokens from 1");
  return CheckSampling(SamplingFrom(request.sampling()));
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

// Starts one recalibration for each chunk of the stage.
absl::StatusOr<std::vector<std::unique_ptr<Recalibration>>> StartRecalibrations(LocalStage* stage) {
  std::vector<std::unique_ptr<Recalibration>> all;
  for (int chunk = 0; chunk < stage->spec().chunks(); ++chunk) {
    ASSIGN_OR_RETURN(auto one, stage->StartRecalibration(chunk));
    all.push_back(std::move(one));
  }
  return all;
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
    for (auto& part : PartsOf(batch, spec)) parts.push_back(std::move(part));
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
  if (spec.replicas.trains_locally()) return TrainLocally(work, batch, steps_per_epoch, report);
  RETURN_IF_ERROR(Accumulate(work, batch, report));
  return stage_->Update(work, report->learning_rate());
}

absl::Status Executor::TrainLocally(Work work, const SampleRange& batch, int64_t steps_per_epoch,
                                    StepReport* report) {
  const StageSpec& spec = stage_->spec();
  const ReplicaRange carried = spec.carried();
  LossSums sums;
  for (work.replica = carried.first; work.replica < carried.end; ++work.replica) {
    work.loss_samples = SamplesOf(spec, work.batch_size, work.replica);
    RETURN_IF_ERROR(stage_->local()->Load(work.replica, work.step));
    ASSIGN_OR_RETURN(const LossSums of_replica, AccumulateReplica(work, batch));
    sums.loss += of_replica.loss;
    sums.correct += of_replica.correct;
    report->add_replica_losses(of_replica.loss);
    RETURN_IF_ERROR(work.loss_samples > 0 ? stage_->Update(work, report->learning_rate())
                                          : stage_->ClearGradients());
  }
  RETURN_IF_ERROR(ExchangeLearned(work, steps_per_epoch));
  ReportLosses(work, sums, report);
  return absl::OkStatus();
}

absl::Status Executor::ExchangeLearned(const Work& work, int64_t steps_per_epoch) {
  const ReplicasSpec& replicas = stage_->spec().replicas;
  StepOfEpoch step;
  step.place = static_cast<int64_t>(work.step) - (work.epoch - 1) * steps_per_epoch;
  step.steps = steps_per_epoch;
  const std::vector<int> sent = FragmentsSent(replicas, step);
  const std::vector<int> taken = FragmentsTaken(replicas, step);
  if (sent.empty() && taken.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(stage_->local()->LoadShared());
  if (step.is_last()) RETURN_IF_ERROR(FinishExchanges());
  if (!sent.empty()) RETURN_IF_ERROR(stage_->StartStep(work));
  for (const int fragment : sent) RETURN_IF_ERROR(BeginExchange(work, fragment));
  for (const int fragment : taken) RETURN_IF_ERROR(FinishExchange(fragment));
  return stage_->local()->Take(taken, step.is_last() ? 0 : replicas.mix);
}

absl::Status Executor::BeginExchange(Work work, int fragment) {
  work.fragment = fragment;
  const ReplicaRange carried = stage_->spec().carried();
  for (work.replica = carried.first; work.replica < carried.end; ++work.replica) {
    RETURN_IF_ERROR(stage_->local()->LoadDifference(fragment, work.replica));
    RETURN_IF_ERROR(stage_->Contribute(work));
  }
  exchanges_[fragment] = work;
  return absl::OkStatus();
}

absl::Status Executor::FinishExchange(int fragment) {
  const auto exchange = exchanges_.find(fragment);
  if (exchange == exchanges_.end()) return absl::OkStatus();
  RETURN_IF_ERROR(stage_->TakeAverage(exchange->second));
  exchanges_.erase(exchange);
  return stage_->local()->Update(fragment);
}

absl::Status Executor::FinishExchanges() {
  while (!exchanges_.empty()) RETURN_IF_ERROR(FinishExchange(exchanges_.begin()->first));
  return absl::OkStatus();
}

absl::Status Executor::EndSteps() {
  if (stage_->local() != nullptr) {
    RETURN_IF_ERROR(stage_->local()->LoadShared());
    RETURN_IF_ERROR(FinishExchanges());
  }
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
  Announce(work, PartsOf(batch, spec));
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
    ASSIGN_OR_RETURN(sums, AccumulateReplicas(work, batch, report));
  }
  ReportLosses(work, sums, report);
  return absl::OkStatus();
}

void Executor::ReportLosses(const Work& work, const LossSums& sums, StepReport* report) const {
  const int64_t positions = stage_->spec().model.positions;
  report->set_loss(sums.loss / static_cast<double>(work.batch_size * positions));
  report->set_correct(sums.correct);
  report->set_positions(positions);
}

absl::StatusOr<LossSums> Executor::AccumulateReplicas(Work work, const SampleRange& batch,
                                                      StepReport* report) {
  RETURN_IF_ERROR(stage_->StartStep(work));
  const ReplicaRange carried = stage_->spec().carried();
  LossSums sums;
  for (work.replica = carried.first; work.replica < carried.end; ++work.replica) {
    RETURN_IF_ERROR(stage_->StartReplica());
    ASSIGN_OR_RETURN(const LossSums of_replica, AccumulateReplica(work, batch));
    sums.loss += of_replica.loss;
    sums.correct += of_replica.correct;
    report->add_replica_losses(of_replica.loss);
    RETURN_IF_ERROR(stage_->Contribute(work));
  }
  RETURN_IF_ERROR(stage_->TakeAverage(work));
  return sums;
}

absl::StatusOr<LossSums> Executor::AccumulateReplica(Work work, const SampleRange& batch) {
  const StageSpec& spec = stage_->spec();
  const int count = MicrobatchesOf(spec, work.batch_size);
  const int first = work.replica * spec.microbatches;
  work.microbatches = std::clamp(count - first, 0, spec.microbatches);
  std::vector<Action> actions;
  if (work.microbatches > 0) {
    actions = StageActions(spec.schedule, spec.stage, spec.stages(), work.microbatches,
                           spec.chunks(), spec.slices());
  }
  for (const Action& action : actions) {
    RETURN_IF_ERROR(Stopped());
    work.chunk = action.chunk;
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
    spec.patience->Advance();
  }
  RETURN_IF_ERROR(Stopped());
  RETURN_IF_ERROR(stage_->SumTiedGradients(work));
  RETURN_IF_ERROR(stage_->SumBasisGradients(work));
  return stage_->TakeLosses(work);
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
  work.epoch = request.epoch();
  work.compress = request.compressed();
  work.phase = work.compress ? PHASE_EVALUATE_COMPRESSED : PHASE_EVALUATE_UNCOMPRESSED;
  const absl::StatusOr<LossSums> sums =
      request.recalibration_samples() > 0
          ? RecalibratedPass(work, request)
          : Pass(work, samples, [](int) { return absl::OkStatus(); });
  stage_->RestoreActivity(before);  // evaluation leaves no trace in the training counters
  if (!sums.ok()) return Failed(sums.status());
  const Model& model = stage_->spec().model;
  const int64_t labels = samples * model.positions;
  EvaluationReport report;
  report.set_loss(labels > 0 ? sums->loss / static_cast<double>(labels) : 0);
  report.set_correct(sums->correct);
  report.set_samples(request.samples());
  report.set_positions(model.positions);
  if (model.tokens) report.set_perplexity(std::exp(report.loss()));
  return report;
}

absl::StatusOr<GenerateResponse> Executor::Generate(const GenerateRequest& request) {
  RETURN_IF_ERROR(stage_->CheckConnected());
  const StageSpec& spec = stage_->spec();
  RETURN_IF_ERROR(CheckText(request, spec.model, stage_->positions()));
  Work work;
  work.phase = PHASE_GENERATE;
  work.epoch = 1;
  work.step = request.step();
  work.batch_size = work.samples = 1;
  work.compress = request.compressed();
  work.deadline = spec.patience->Deadline();
  const uint64_t bytes_before = stage_->EvaluationWireBytes();
  const absl::StatusOr<std::vector<float>> logits =
      stage_->Generate(work, request.ids(), request.first_position());
  if (!logits.ok()) return Failed(logits.status());
  GenerateResponse response;
  response.set_wire_bytes(stage_->EvaluationWireBytes() - bytes_before);
  if (!spec.last()) return response;
  const bool is_finite =
      std::all_of(logits->begin(), logits->end(), [](float logit) { return std::isfinite(logit); });
  if (!is_finite) {
    return absl::OutOfRangeError(absl::StrCat("stage ", spec.stage, ": a logit of token ",
                                              request.step(), " is no finite number"));
  }
  RandomStream random(RandomKey(RandomKey(request.sampling().seed(), "sampling"), request.step()));
  response.set_id(SampleToken(Drawable(*logits, request.sampling()),
                              SamplingFrom(request.sampling()), random.NextFloat()));
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
