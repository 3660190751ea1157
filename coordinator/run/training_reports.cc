#include "coordinator/run/training_reports.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "coordinator/trace/trace.h"
#include "models/parts.h"

namespace thinwire {
namespace {

// Returns whether it is of what crosses a cut, of which one server of a pipeline tells. All may
// tell of what carriers exchange, whose directions have other names or which is of sums.
bool IsAtCut(const TrafficRecord& traffic) {
  return traffic.direction() != "contributions" && traffic.direction() != "average" &&
         traffic.boundary() != kSums;
}

// Adds the traffic of another server. The error is the mean over messages.
void AddTo(const TrafficRecord& other, TrafficRecord* sum) {
  if (sum->has_relative_error() && other.has_relative_error()) {
    const double messages = static_cast<double>(sum->messages() + other.messages());
    sum->set_relative_error((sum->relative_error() * static_cast<double>(sum->messages()) +
                             other.relative_error() * static_cast<double>(other.messages())) /
                            messages);
  } else if (other.has_relative_error()) {
    sum->set_relative_error(other.relative_error());
  }
  if (other.has_level()) sum->set_level(other.level());
  sum->set_raw_bytes(sum->raw_bytes() + other.raw_bytes());
  sum->set_wire_bytes(sum->wire_bytes() + other.wire_bytes());
  sum->set_messages(sum->messages() + other.messages());
}

// Adds up in the order of the servers.
TrafficRecord SumOf(const std::map<int, TrafficRecord>& parts) {
  TrafficRecord sum = parts.begin()->second;
  for (auto part = std::next(parts.begin()); part != parts.end(); ++part) AddTo(part->second, &sum);
  return sum;
}

// Returns the report of the step whose parts these are, in order of carriers.
StepReport Whole(const std::map<int, StepReport>& parts) {
  StepReport whole = parts.begin()->second;
  whole.clear_correct();
  whole.set_labels(0);
  whole.clear_replica_losses();
  double loss = 0;
  for (const auto& [carrier, part] : parts) {
    for (const double of_replica : part.replica_losses()) loss += of_replica;
    if (part.has_correct()) whole.set_correct(whole.correct() + part.correct());
    whole.set_labels(whole.labels() + part.labels());
    whole.set_seconds(std::max(whole.seconds(), part.seconds()));
  }
  whole.set_loss(whole.labels() == 0 ? 0 : loss / static_cast<double>(whole.labels()));
  return whole;
}

// Marks an observer's failure as the coordinator's own, whichever stage's report led to it.
absl::Status OwnFailure(absl::Status status, Fleet* fleet) {
  if (status.ok()) return status;
  fleet->Fail({Failure::kCoordinator, Failure::Kind::kError, std::move(status)});
  return absl::CancelledError("the run has failed");
}

}  // namespace

std::optional<StepReport> CarrierReports::Add(int carrier, const StepReport& step) {
  const CarrierGrid& grid = pipelines_.grid;
  if (grid.PlaceOf(carrier) > 0) return std::nullopt;  // it tells what the first of its row does
  if (step.is_of_all()) {
    if (step.step() <= last_of_all_) return std::nullopt;
    last_of_all_ = step.step();
    return step;
  }
  const int rows = pipelines_.GridOf(pipelines_.stages - 1).replicas;
  if (rows == 1) return step;
  std::map<int, StepReport>& parts = steps_[step.step()];
  parts[carrier] = step;
  if (static_cast<int>(parts.size()) < rows) return std::nullopt;
  StepReport whole = Whole(parts);
  steps_.erase(step.step());
  return whole;
}

std::vector<TrafficRecord> CarrierReports::Add(int server,
                                               const std::vector<TrafficRecord>& traffic) {
  std::vector<TrafficRecord> whole;
  for (const TrafficRecord& one : traffic) {
    const Place place(one.step(), one.boundary(), one.direction());
    std::map<int, TrafficRecord>& parts = traffic_[place];
    parts[server] = one;
    const int senders = pipelines_.GridOf(pipelines_.PlaceOf(server).stage).replicas;
    const int all = IsAtCut(one) ? senders : pipelines_.servers();
    if (static_cast<int>(parts.size()) < all) continue;
    whole.push_back(SumOf(parts));
    traffic_.erase(place);
  }
  return whole;
}

std::vector<TrafficRecord> CarrierReports::Rest() {
  std::vector<TrafficRecord> rest;
  for (const auto& [place, parts] : traffic_) rest.push_back(SumOf(parts));
  traffic_.clear();
  return rest;
}

TrainingReports::TrainingReports(std::vector<std::string> cuts, const Pipelines& pipelines,
                                 std::optional<RunTrace> trace, RunObserver* observer,
                                 Summary* summary)
    : cuts_(std::move(cuts)),
      pipelines_(pipelines),
      observer_(*observer),
      summary_(*summary),
      tally_(cuts_, pipelines),
      carriers_(pipelines) {
  if (trace) tracer_.emplace(*std::move(trace));
}

void TrainingReports::ContinueFrom(const RunProgress& progress, uint64_t step,
                                   const Pipelines& pipelines, std::optional<SteadyTime> lost_at) {
  *summary_.mutable_epochs() = progress.epochs();
  *summary_.mutable_boundaries() = progress.boundaries();
  summary_.clear_replicas();
  if (progress.has_replicas()) *summary_.mutable_replicas() = progress.replicas();
  absl::MutexLock lock(&mutex_);
  if (step != tally_.step()) squares_ = 0;  // those of another step
  pipelines_ = pipelines;
  tally_ = Tally(cuts_, pipelines_, progress, step);
  carriers_ = CarrierReports(pipelines_);
  lost_at_ = lost_at;
}

absl::Status TrainingReports::StartTrace(uint64_t last_step, bool goes_on) {
  if (!tracer_) return absl::OkStatus();
  if (std::exchange(has_traced_, true)) {
    if (!goes_on) tracer_->RestartAfter(step());
    return absl::OkStatus();
  }
  return CheckTraceComes(tracer_->steps(), step(), last_step);
}

void TrainingReports::BeginPart() { part_start_ = SteadyTime::Now(); }

void TrainingReports::EndPart() {
  absl::MutexLock lock(&mutex_);
  tally_.AddSeconds(SecondsSince(part_start_));
}

absl::Status TrainingReports::Take(int server, const StageEvent& event, Fleet* fleet) {
  if (fleet->Follows(server)) {
    // It may be the first to tell of a step.
    if (!event.has_step() || !event.step().is_of_all()) return absl::OkStatus();
    absl::MutexLock lock(&mutex_);
    return TakeTraining(server, event, fleet);
  }
  if (event.has_trace()) return TakeTrace(server, event.trace(), fleet);
  // Holds no lock, as it may call stages.
  if (event.has_stage()) fleet->Measure(server, event.stage());
  absl::MutexLock lock(&mutex_);
  return TakeTraining(server, event, fleet);
}

absl::Status TrainingReports::TakeStep(int carrier, const StepReport& of_carrier, Fleet* fleet) {
  const std::optional<StepReport> step = carriers_.Add(carrier, of_carrier);
  if (!step) return absl::OkStatus();
  tally_.Add(*step);
  squares_ = step->squares();
  TellRecovered();
  return OwnFailure(observer_.OnStep(RecordOf(*step)), fleet);
}

absl::Status TrainingReports::TakeTraining(int server, const StageEvent& event, Fleet* fleet) {
  if (event.has_step()) return TakeStep(pipelines_.PlaceOf(server).carrier, event.step(), fleet);
  if (event.has_stage()) {
    StageReport report = event.stage();
    report.set_stage(static_cast<uint32_t>(server));
    const std::vector<TrafficRecord> traffic = carriers_.Add(server, TakeTraffic(&report));
    RETURN_IF_ERROR(OwnFailure(observer_.OnTraffic(traffic), fleet));
    tally_.Add(report);
    return OwnFailure(TellTotals(tally_.Totals(SecondsSince(part_start_))), fleet);
  }
  return absl::OkStatus();
}

// Holds no lock while it asks the stage for its clock: the reports of other stages would wait.
absl::Status TrainingReports::TakeTrace(int server, const TraceReport& report, Fleet* fleet) {
  if (!tracer_ || !tracer_->Add(server, report, fleet)) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return OwnFailure(observer_.OnTrace(tracer_->Upto(tracer_->steps().last())), fleet);
}

// After the first step behind a checkpoint, reports how long the recovery took.
void TrainingReports::TellRecovered() {
  if (!lost_at_ || summary_.events().empty()) return;
  summary_.mutable_events()->rbegin()->set_seconds(SecondsSince(*lost_at_));
  lost_at_.reset();
}

absl::Status TrainingReports::CheckPart(uint32_t epoch, uint64_t last_step, uint64_t samples) {
  absl::MutexLock lock(&mutex_);
  if (tally_.step() != last_step || tally_.epoch_samples() != samples) {
    return absl::InternalError(absl::StrCat("epoch ", epoch, ": the last stage reported ",
                                            tally_.epoch_samples(), " trained samples of ",
                                            samples));
  }
  const std::vector<TrafficRecord> rest = carriers_.Rest();
  if (!rest.empty()) RETURN_IF_ERROR(observer_.OnTraffic(rest));
  const std::vector<ComputeRecord> compute = tally_.Compute();
  *summary_.mutable_compute() = {compute.begin(), compute.end()};
  return TellTotals(tally_.Totals());
}

void TrainingReports::Add(const EvaluationRecord& evaluation) {
  absl::MutexLock lock(&mutex_);
  tally_.Add(evaluation);
}

absl::Status TrainingReports::TellTrace(uint64_t before) {
  const uint64_t now = step();
  if (!tracer_ || now < tracer_->steps().first() || before >= tracer_->steps().last()) {
    return absl::OkStatus();
  }
  return observer_.OnTrace(tracer_->Upto(now));
}

absl::Status TrainingReports::WarnOfNoTrace() {
  const uint64_t now = step();
  if (!tracer_ || now >= tracer_->steps().first()) return absl::OkStatus();
  return observer_.OnWarning(absl::StrCat("trace: step ", tracer_->steps().first(),
                                          " never came, the run ended with step ", now));
}

void TrainingReports::OnCheckpoint(const CheckpointManifest& manifest, Fleet* fleet) {
  absl::MutexLock lock(&mutex_);
  OwnFailure(observer_.OnCheckpoint(manifest), fleet).IgnoreError();
}

void TrainingReports::EndEpoch() {
  absl::MutexLock lock(&mutex_);
  tally_.EndEpoch();
}

EpochRecord TrainingReports::EpochSoFar(uint32_t epoch) const {
  absl::MutexLock lock(&mutex_);
  return tally_.EpochOf(epoch);
}

void TrainingReports::Save(RunProgress* progress) const {
  absl::MutexLock lock(&mutex_);
  tally_.Save(progress);
}

uint64_t TrainingReports::step() const {
  absl::MutexLock lock(&mutex_);
  return tally_.step();
}

StageStanding TrainingReports::standing() const {
  absl::MutexLock lock(&mutex_);
  StageStanding standing;
  standing.set_step(tally_.step());
  standing.set_squares(squares_);
  return standing;
}

uint64_t TrainingReports::evaluated_step() const {
  absl::MutexLock lock(&mutex_);
  return tally_.evaluated_step();
}

absl::Status TrainingReports::TellTotals(const RunTotals& totals) {
  *summary_.mutable_boundaries() = {totals.boundaries.begin(), totals.boundaries.end()};
  if (totals.replicas.has_contributions()) *summary_.mutable_replicas() = totals.replicas;
  if (totals.stash.messages() > 0) *summary_.mutable_stash() = totals.stash;
  if (totals.swap.bytes_out() > 0) *summary_.mutable_swap() = totals.swap;
  return observer_.OnTotals(totals);
}

}  // namespace thinwire
