#include "coordinator/run/run.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "config/specs.h"
#include "coordinator/fleet/stage_setup.h"
#include "coordinator/run/boundary_totals.h"

namespace thinwire {
namespace {

std::string Hex(uint64_t digest) { return absl::StrFormat("%016x", digest); }

// Running means of one epoch, from its steps.
struct EpochSums {
  double loss = 0;  // sum over samples
  uint64_t correct = 0, samples = 0;
  double lr = 0;

  void Add(const StepReport& step) {
    loss += step.loss() * step.samples();
    correct += step.correct();
    samples += step.samples();
    lr = step.learning_rate();
  }
};

StepRecord RecordOf(const StepReport& step) {
  StepRecord record;
  record.set_epoch(step.epoch());
  record.set_step(step.step());
  record.set_loss(step.loss());
  record.set_accuracy(step.samples() == 0 ? 0 : 1.0 * step.correct() / step.samples());
  record.set_lr(step.learning_rate());
  record.set_samples(step.samples());
  record.set_seconds(step.seconds());
  return record;
}

// "cuda:0 NVIDIA H200": one for all, or those of all stages.
std::string Together(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> names;
  for (const DeviceInfo& device : devices) {
    names.push_back(device.model().empty() ? device.name()
                                           : absl::StrCat(device.name(), " ", device.model()));
  }
  const bool all_alike =
      std::all_of(names.begin(), names.end(), [&](const auto& name) { return name == names[0]; });
  return all_alike ? names[0] : absl::StrJoin(names, ", ");
}

StageRecord StageRecordOf(const BuildInfo& build, int threads) {
  StageRecord record;
  record.set_commit(build.commit());
  record.set_build_id(build.build_id());
  record.set_cpu_model(build.cpu_model());
  record.set_simd_target(build.simd_target());
  record.set_onednn_isa(build.onednn_isa());
  record.set_threads(static_cast<uint32_t>(threads));
  *record.mutable_libraries() = build.libraries();
  return record;
}

// Tells the user, once, of a stage that runs another build than the first.
void WarnOfOtherBuilds(const Provenance& provenance, Fleet* fleet) {
  const std::string& first = provenance.stages(0).build_id();
  for (int i = 1; i < provenance.stages_size(); ++i) {
    const std::string& other = provenance.stages(i).build_id();
    if (other == first) continue;
    std::fprintf(stderr, "thinwire: warning: %s runs build \"%s\", %s runs build \"%s\"\n",
                 fleet->stage(0).Name().c_str(), first.c_str(), fleet->stage(i).Name().c_str(),
                 other.c_str());
    return;
  }
}

// More than what is captured of one step takes in one stage's file besides the tensors' bytes.
uint64_t CaptureHeaderBytes(const Experiment& experiment) {
  constexpr uint64_t kFileBytes = 1024, kTensorBytes = 256;
  const CaptureConfig& capture = experiment.capture();
  const uint64_t tensors_of_cut =
      uint64_t{experiment.pipeline().microbatches()} * static_cast<uint64_t>(capture.what_size());
  uint64_t bytes = kFileBytes;
  for (const std::string& cut : capture.cuts()) {
    bytes += tensors_of_cut * (kTensorBytes + 2 * cut.size());  // two: escaped
  }
  return bytes;
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
    RETURN_IF_ERROR(CheckCaptureSteps());
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
    Provenance& provenance = *summary_.mutable_provenance();
    for (size_t i = 0; i < answers.size(); ++i) {
      *provenance.add_stages() = StageRecordOf(answers[i].build(), threads_[i]);
    }
    const StageRecord& first = provenance.stages(0);
    provenance.set_commit(first.commit());
    provenance.set_build_id(first.build_id());
    provenance.set_cpu_model(first.cpu_model());
    provenance.set_simd_target(first.simd_target());
    provenance.set_onednn_isa(first.onednn_isa());
    *provenance.mutable_libraries() = first.libraries();
    provenance.set_threads(first.threads());
    provenance.set_microbatches(experiment_.pipeline().microbatches());
    WarnOfOtherBuilds(provenance, &fleet_);
    return absl::OkStatus();
  }

  absl::Status Configure() {
    ASSIGN_OR_RETURN(const Configured configured, ConfigureStages(experiment_, threads_, &fleet_));
    summary_.set_parameters(configured.parameters);
    data_ = configured.data;
    Provenance& provenance = *summary_.mutable_provenance();
    provenance.set_train_digest(Hex(data_.train_digest()));
    provenance.set_test_digest(Hex(data_.test_digest()));
    provenance.set_train_samples(data_.train_samples());
    provenance.set_test_samples(data_.test_samples());
    for (const DeviceInfo& device : configured.devices) {
      DeviceRecord& record = *provenance.add_devices();
      record.set_name(device.name());
      record.set_model(device.model());
      record.set_libraries(device.libraries());
    }
    summary_.set_device(Together(configured.devices));
    return absl::OkStatus();
  }

  RunPlan Plan() const {
    const uint64_t batch = experiment_.data().batch_size();
    return {experiment_.epochs(), (data_.train_samples() + batch - 1) / batch,
            data_.train_samples()};
  }

  absl::Status RunEpoch(uint32_t epoch) {
    EpochRecord& record = *summary_.add_epochs();
    record.set_epoch(epoch);
    absl::Status status = Train(epoch, &record);
    if (status.ok()) status = FetchCaptures(epoch);
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
    record->mutable_train()->set_accuracy(1.0 * sums.correct / sums.samples);
    record->set_seconds(seconds);
    record->set_samples_per_second(sums.samples / seconds);
    return observer_.OnTotals(Totals(training_seconds_));
  }

  // Files that are not the official ones may hold fewer samples than the experiment was checked
  // for.
  absl::Status CheckCaptureSteps() const {
    const uint64_t steps = Plan().steps_per_epoch * experiment_.epochs();
    for (const uint64_t step : experiment_.capture().steps()) {
      if (step > steps) {
        return absl::InvalidArgumentError(absl::StrCat("capture.steps: ", step, ", want at most ",
                                                       steps, ": the stages have ",
                                                       data_.train_samples(), " training samples"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status TakeCapture(uint64_t step, StageClient& stage, std::string* file) const {
    const uint64_t header = CaptureHeaderBytes(experiment_);
    return stage.ExportCapture(step, [&](const FileChunk& chunk) {
      const uint64_t bytes = file->size() + chunk.data().size();
      if (bytes > header && bytes - header > experiment_.capture().limit_bytes()) {
        return absl::ResourceExhaustedError(absl::StrCat(
            stage.Name(), ": its capture of step ", step, " has ", bytes, " bytes or more, want ",
            experiment_.capture().limit_bytes(), ", which is capture.limit_bytes, and a header"));
      }
      *file += chunk.data();
      return absl::OkStatus();
    });
  }

  // Steps of this epoch, so that the stages hold no more than an epoch's.
  absl::Status FetchCaptures(uint32_t epoch) {
    const uint64_t steps = Plan().steps_per_epoch;
    for (const uint64_t step : experiment_.capture().steps()) {
      if (step <= (epoch - 1) * steps || step > epoch * steps) continue;
      std::vector<std::string> files(static_cast<size_t>(fleet_.size()));
      RETURN_IF_ERROR(fleet_.OnAll(
          [&](StageClient& stage) { return TakeCapture(step, stage, &files[stage.stage()]); }));
      RETURN_IF_ERROR(observer_.OnCapture(step, files));
    }
    return absl::OkStatus();
  }

  absl::Status OnTrainEvent(const StageClient& stage, const StageEvent& event, EpochSums* sums) {
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

  RunTotals Totals(double seconds) {
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
    measured->set_accuracy(1.0 * report.correct() / report.samples());
    return absl::OkStatus();
  }

  const Experiment& experiment_;
  Fleet& fleet_;
  RunObserver& observer_;
  Summary& summary_;
  std::vector<int> threads_;  // per stage
  ConfigureResponse data_;    // of the first stage
  absl::Mutex events_;        // guards what the callbacks of OnAll's threads touch
  BoundaryTotals totals_;
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
