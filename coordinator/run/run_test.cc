#include "coordinator/run/run.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "base/safetensors.h"
#include "base/steady_clock_id.h"
#include "base/steady_time.h"
#include "config/experiment.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class Recorder : public RunObserver {
 public:
  absl::Status OnStep(const StepRecord& step) override {
    steps.push_back(step);
    return on_step;
  }
  absl::Status OnTotals(const RunTotals& totals) override {
    last_totals = totals;
    return absl::OkStatus();
  }
  absl::Status OnEpoch(const EpochRecord& epoch) override {
    epochs.push_back(epoch);
    return absl::OkStatus();
  }
  absl::Status OnCapture(uint64_t step, const std::vector<std::string>& files) override {
    captures.emplace_back(step, files);
    return absl::OkStatus();
  }

  absl::Status OnTrace(const RunTrace& trace) override {
    traces.push_back(trace);
    return absl::OkStatus();
  }

  absl::Status on_step;
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
  std::vector<std::pair<uint64_t, std::vector<std::string>>> captures;
  std::vector<RunTrace> traces;
  RunTotals last_totals;
};

// A report of `steps`, each a slice of a millisecond that began at so many milliseconds.
StageEvent Traced(int64_t clock, const std::vector<uint64_t>& steps) {
  StageEvent event;
  for (const uint64_t step : steps) {
    TraceSlice* slice = event.mutable_trace()->add_slices();
    slice->set_name("step");
    slice->set_step(step);
    slice->set_begin(clock + 1'000'000 * static_cast<int64_t>(step));
    slice->set_end(slice->begin() + 1'000'000);
  }
  return event;
}

StageEvent Step(uint64_t step, double loss, uint32_t correct, uint32_t samples) {
  StageEvent event;
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_loss(loss);
  event.mutable_step()->set_correct(correct);
  event.mutable_step()->set_samples(samples);
  event.mutable_step()->set_learning_rate(0.1);
  return event;
}

// Two stages; four training samples in batches of three, two test samples.
class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    experiment_.set_epochs(2);
    experiment_.mutable_data()->set_batch_size(3);
    experiment_.mutable_pipeline()->add_cuts("layer1");
    experiment_.mutable_pipeline()->set_threads("auto");
    experiment_.mutable_pipeline()->set_schedule("1f1b");
    experiment_.mutable_pipeline()->set_microbatches(2);
    experiment_.mutable_evaluation()->set_every(1);
    experiment_.mutable_evaluation()->set_compressed(true);
    experiment_.mutable_evaluation()->set_uncompressed(true);
    first_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer* writer) {
      StageEvent event;
      BoundaryReport* end = event.mutable_stage()->add_boundaries();
      end->set_boundary("layer1");
      end->set_sender(true);
      end->set_wire_bytes(50);
      (*event.mutable_stage()->mutable_activity_seconds())["forward"] = 0.25;
      writer->Write(event);
      return grpc::Status::OK;
    };
    last_.train = [](const TrainRequest& request, grpc::ServerContext*, FakeStage::Writer* writer) {
      writer->Write(Step(2 * request.epoch() - 1, /*loss=*/2, /*correct=*/1, /*samples=*/3));
      writer->Write(Step(2 * request.epoch(), /*loss=*/6, /*correct=*/1, /*samples=*/1));
      return grpc::Status::OK;
    };
    last_.evaluate = [](const EvaluateRequest& request, grpc::ServerContext*,
                        FakeStage::Writer* writer) {
      StageEvent event;
      const bool recalibrated = request.recalibration_samples() > 0;
      event.mutable_evaluation()->set_loss(request.compressed() ? 4 : recalibrated ? 2 : 3);
      event.mutable_evaluation()->set_correct(1);
      event.mutable_evaluation()->set_samples(2);
      writer->Write(event);
      return grpc::Status::OK;
    };
  }

  // Both stages report each epoch's steps as traced, by their own clocks.
  void TraceAll() {
    experiment_.mutable_pipeline()->set_stages(2);
    const int64_t now = SteadyTime::Now().nanoseconds();
    for (FakeStage* stage : {&first_, &last_}) {
      stage->train = [stage, now, train = stage->train](const TrainRequest& request,
                                                        grpc::ServerContext* context,
                                                        FakeStage::Writer* writer) {
        const uint64_t first = 2 * request.epoch() - 1;
        writer->Write(Traced(now + stage->clock_offset, {first, first + 1}));
        return train(request, context, writer);
      };
    }
  }

  absl::Status Train(const RunOptions& run = {}) {
    FleetOptions options;
    options.grace = absl::Milliseconds(50);
    Fleet fleet({first_.address(), last_.address()}, "run", options);
    const absl::Status status = RunExperiment(experiment_, &fleet, &observer_, &summary_, run);
    fleet.Release();
    return status;
  }

  Experiment experiment_;
  FakeStage first_, last_;
  Recorder observer_;
  Summary summary_;
};

TEST_F(RunTest, CallsComeInOrder) {
  experiment_.set_epochs(1);
  ASSERT_TRUE(Train().ok());
  EXPECT_THAT(first_.calls(),
              ElementsAre("Acquire", "Configure stage 0 threads 2", "Connect " + last_.address(),
                          "Train 1", "Evaluate 1 compressed", "Evaluate 1", "Release"));
  EXPECT_THAT(last_.calls(), Contains("Connect "));
}

TEST_F(RunTest, AnEpochIsTheMeanOverItsSamplesAndHasBothEvaluations) {
  ASSERT_TRUE(Train().ok());
  ASSERT_EQ(summary_.epochs_size(), 2);
  const EpochRecord& epoch = summary_.epochs(1);
  EXPECT_EQ(epoch.epoch(), 2u);
  EXPECT_EQ(epoch.train().loss(), 3.0);  // (3 x 2 + 1 x 6) / 4
  EXPECT_EQ(epoch.train().accuracy(), 0.5);
  EXPECT_EQ(epoch.lr(), 0.1);
  EXPECT_EQ(epoch.test().compressed().loss(), 4.0);
  EXPECT_EQ(epoch.test().uncompressed().loss(), 3.0);
  EXPECT_EQ(epoch.test().uncompressed().accuracy(), 0.5);
  EXPECT_FALSE(epoch.test().has_uncompressed_reason());
  EXPECT_GT(epoch.samples_per_second(), 0.0);
}

TEST_F(RunTest, ObserversSeeEveryStepAndEpochAndTheTotals) {
  ASSERT_TRUE(Train().ok());
  ASSERT_EQ(observer_.steps.size(), 4u);
  EXPECT_EQ(observer_.steps[3].step(), 4u);
  EXPECT_EQ(observer_.steps[3].accuracy(), 1.0);
  EXPECT_EQ(observer_.epochs.size(), 2u);
  EXPECT_EQ(observer_.last_totals.boundaries[0].activations().wire_bytes(), 50u);
}

RunOptions Tracing(uint64_t first, uint64_t last) {
  RunOptions options;
  options.trace.emplace();
  options.trace->set_first(first);
  options.trace->set_last(last);
  return options;
}

TEST_F(RunTest, TracedStepsAreToldOnOneClock) {
  last_.clock_offset = -3'000'000'000;
  TraceAll();
  ASSERT_TRUE(Train(Tracing(1, 2)).ok());
  EXPECT_THAT(first_.calls(), Contains("trace 1 to 2"));
  ASSERT_EQ(observer_.traces.size(), 2u);  // at once, and at the epoch's end
  const RunTrace& trace = observer_.traces[0];
  EXPECT_THAT(trace.cuts, ElementsAre("layer1"));
  ASSERT_EQ(trace.stages.size(), 2u);
  for (const StageTrace& stage : trace.stages) {
    EXPECT_EQ(stage.slices.size(), 2u);
    EXPECT_GT(stage.clock.uncertainty, 0);
  }
  const int64_t apart = trace.stages[0].slices[0].begin() - trace.stages[1].slices[0].begin();
  EXPECT_LE(std::abs(apart), trace.stages[0].clock.uncertainty + trace.stages[1].clock.uncertainty);
  EXPECT_LE(std::abs(trace.stages[1].clock.offset + 3'000'000'000),
            trace.stages[1].clock.uncertainty);
}

TEST_F(RunTest, ATraceAcrossEpochsIsToldAfterEachAndOnceMoreWhole) {
  TraceAll();
  ASSERT_TRUE(Train(Tracing(2, 3)).ok());
  ASSERT_EQ(observer_.traces.size(), 3u);
  EXPECT_EQ(observer_.traces[0].steps.last(), 2u);
  EXPECT_EQ(observer_.traces[0].stages[0].slices.size(), 2u);
  for (const size_t whole : {1, 2}) {
    EXPECT_EQ(observer_.traces[whole].steps.last(), 3u);
    EXPECT_EQ(observer_.traces[whole].stages[0].slices.size(), 4u);
  }
}

TEST_F(RunTest, StagesOfThisMachineHaveItsClock) {
  first_.clock = last_.clock = SteadyClockId();
  TraceAll();
  ASSERT_TRUE(Train(Tracing(1, 1)).ok());
  for (const StageTrace& stage : observer_.traces.back().stages) {
    EXPECT_EQ(stage.clock.offset, 0);
    EXPECT_EQ(stage.clock.uncertainty, 0);
  }
}

TEST_F(RunTest, AStageWhoseClockIsUnknownHasNoSlices) {
  last_.clock = "";
  TraceAll();
  ASSERT_TRUE(Train(Tracing(1, 1)).ok());
  EXPECT_EQ(observer_.traces.back().stages[1].slices.size(), 0u);
  EXPECT_GT(observer_.traces.back().stages[1].dropped, 0u);
}

TEST_F(RunTest, AStepToTraceThatTheRunDoesNotHaveIsNamedBeforeTheFirst) {
  EXPECT_EQ(Train(Tracing(3, 5)).message(), "trace: step 5 never comes, the run has 4 steps");
  EXPECT_THAT(first_.calls(), Not(Contains("Train 1")));
}

TEST_F(RunTest, SummarySaysWhatRan) {
  experiment_.set_seed(7);
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(summary_.seed(), 7u);
  EXPECT_EQ(summary_.stages(), 2u);
  EXPECT_EQ(summary_.parameters(), 20u);
  EXPECT_EQ(summary_.device(), "cpu");
  EXPECT_EQ(summary_.provenance().commit(), "abc");
  EXPECT_EQ(summary_.provenance().train_samples(), 4u);
  EXPECT_EQ(summary_.boundaries(0).name(), "layer1");
  ASSERT_EQ(summary_.compute_size(), 2);
  EXPECT_EQ(summary_.compute(0).steps(), 4u);
  EXPECT_EQ(summary_.compute(0).samples(), 8u);
  EXPECT_EQ(summary_.compute(0).forward_seconds(), 0.25);
}

TEST_F(RunTest, SummaryNamesTheDevicesOfAllStagesWhereTheyDiffer) {
  DeviceInfo* device = last_.configured.mutable_device();
  device->set_name("cuda:1");
  device->set_model("NVIDIA H200");
  device->set_libraries("CUDA 13.0");
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(summary_.device(), "cpu, cuda:1 NVIDIA H200");
  ASSERT_EQ(summary_.provenance().devices_size(), 2);
  EXPECT_EQ(summary_.provenance().devices(0).name(), "cpu");
  EXPECT_EQ(summary_.provenance().devices(1).model(), "NVIDIA H200");
  EXPECT_EQ(summary_.provenance().devices(1).libraries(), "CUDA 13.0");
}

TEST_F(RunTest, SummarySaysOfEachStageWhatItRanOn) {
  first_.build.set_cpu_model("Xeon");
  last_.build.set_cpu_model("EPYC");
  last_.build.set_simd_target("AVX2");
  (*last_.build.mutable_libraries())["oneDNN"] = "3.0";
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(summary_.provenance().cpu_model(), "Xeon");
  ASSERT_EQ(summary_.provenance().stages_size(), 2);
  EXPECT_EQ(summary_.provenance().stages(0).cpu_model(), "Xeon");
  const StageRecord& last = summary_.provenance().stages(1);
  EXPECT_EQ(last.commit(), "abc");
  EXPECT_EQ(last.cpu_model(), "EPYC");
  EXPECT_EQ(last.simd_target(), "AVX2");
  EXPECT_EQ(last.libraries().at("oneDNN"), "3.0");
  EXPECT_EQ(last.threads(), 2u);
}

TEST_F(RunTest, OneLineWarnsOfStagesWithDifferentBuilds) {
  first_.build.set_build_id("abc gcc opt");
  last_.build.set_build_id("abc gcc opt");
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  summary_.Clear();
  last_.build.set_build_id("def gcc opt");
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "thinwire: warning: stage 0 (" + first_.address() +
                ") runs build \"abc gcc opt\", stage 1 (" + last_.address() +
                ") runs build \"def gcc opt\"\n");
}

TEST_F(RunTest, CapturesAreHandedOverAfterTheirEpoch) {
  experiment_.mutable_capture()->add_steps(3);
  experiment_.mutable_capture()->set_limit_bytes(1000);
  first_.captured = "first's";
  last_.captured = "last's";
  ASSERT_TRUE(Train().ok());
  EXPECT_THAT(observer_.captures, ElementsAre(Pair(3, ElementsAre("first's", "last's"))));
  EXPECT_THAT(first_.calls(), Contains("ExportCapture 3"));
}

TEST_F(RunTest, AStepToCaptureThatTheStagesDoNotReachIsRefusedBeforeTraining) {
  experiment_.mutable_capture()->add_steps(5);
  EXPECT_EQ(Train().message(),
            "capture.steps: 5, want at most 4: the stages have 4 training samples");
  EXPECT_THAT(first_.calls(), Not(Contains("Train 1")));
}

TEST_F(RunTest, ACaptureOfMoreThanItsLimitEndsTheRun) {
  experiment_.mutable_capture()->add_steps(1);
  experiment_.mutable_capture()->set_limit_bytes(1000);
  last_.captured = std::string(2025, 'x');  // and 1024 of header
  EXPECT_EQ(Train().message(), "stage 1 (" + last_.address() +
                                   "): its capture of step 1 has 2025 bytes or more, want 1000, "
                                   "which is capture.limit_bytes, and a header");
}

TEST_F(RunTest, EvaluatesEveryNthEpochAndAfterTheLast) {
  experiment_.set_epochs(3);
  experiment_.mutable_evaluation()->set_every(2);
  ASSERT_TRUE(Train().ok());
  EXPECT_FALSE(summary_.epochs(0).has_test());
  EXPECT_TRUE(summary_.epochs(1).has_test());
  EXPECT_TRUE(summary_.epochs(2).has_test());
}

TEST_F(RunTest, EvaluatesOnlyAfterTheLastEpochWhenEveryIsZero) {
  experiment_.mutable_evaluation()->set_every(0);
  experiment_.mutable_evaluation()->set_uncompressed(false);
  ASSERT_TRUE(Train().ok());
  EXPECT_FALSE(summary_.epochs(0).has_test());
  EXPECT_TRUE(summary_.epochs(1).test().has_compressed());
  EXPECT_FALSE(summary_.epochs(1).test().has_uncompressed());
}

TEST_F(RunTest, TheRecalibratedEvaluationComesLastAndOnNoMoreSamplesThanThereAre) {
  experiment_.set_epochs(1);
  experiment_.mutable_evaluation()->set_recalibrated(true);
  experiment_.mutable_evaluation()->set_recalibration_samples(2000);
  ASSERT_TRUE(Train().ok());
  EXPECT_THAT(last_.calls(), Contains("Evaluate 1 recalibrated on 4"));
  EXPECT_EQ(summary_.epochs(0).test().uncompressed().loss(), 3.0);
  EXPECT_EQ(summary_.epochs(0).test().uncompressed_recalibrated().loss(), 2.0);
}

TEST_F(RunTest, ABottleneckIsTheReasonForNoUncompressedEvaluation) {
  experiment_.mutable_compression()->mutable_bottleneck()->set_kind("linear");
  experiment_.mutable_evaluation()->set_uncompressed(false);
  ASSERT_TRUE(Train().ok());
  const TestRecord& test = summary_.epochs(1).test();
  EXPECT_FALSE(test.has_uncompressed());
  EXPECT_EQ(test.uncompressed_reason(),
            "cut layer1 has a bottleneck, which is part of the model and cannot be switched off");
}

TEST_F(RunTest, StagesThatReadDifferentDataAreRefused) {
  last_.configured.set_train_digest(1);
  const absl::Status status = Train();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("stages read different data"), HasSubstr("0000000000000001")));
  EXPECT_THAT(first_.calls(), Not(Contains("Train 1")));
}

TEST_F(RunTest, AFailureKeepsTheEpochsBeforeIt) {
  auto train = last_.train;
  last_.train = [train](const TrainRequest& request, grpc::ServerContext* context,
                        FakeStage::Writer* writer) {
    if (request.epoch() == 1) return train(request, context, writer);
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "step 3: loss is nan");
  };
  EXPECT_THAT(std::string(Train().message()), HasSubstr("step 3: loss is nan"));
  ASSERT_EQ(summary_.epochs_size(), 1);
  EXPECT_EQ(summary_.boundaries(0).activations().wire_bytes(), 50u);
}

TEST_F(RunTest, AnObserversErrorEndsTheRunAndBlamesNoStage) {
  observer_.on_step = absl::ResourceExhaustedError("metrics.jsonl: No space left on device");
  EXPECT_EQ(std::string(Train().message()), "metrics.jsonl: No space left on device");
}

TEST_F(RunTest, SamplesThatWereNotTrainedAreNoticed) {
  last_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
    return grpc::Status::OK;
  };
  EXPECT_THAT(std::string(Train().message()), HasSubstr("0 trained samples of 4"));
}

// The steps that are asked for, a sample each but for an epoch's first.
void ReportSteps(const TrainRequest& request, FakeStage::Writer* writer) {
  for (uint64_t step = request.first_step(); step <= request.last_step(); ++step) {
    writer->Write(Step(step, /*loss=*/2, /*correct=*/1, /*samples=*/step % 2 == 1 ? 3 : 1));
  }
}

// The model of the stages is real: checkpoints are dealt out by it.
class CheckpointedRunTest : public RunTest {
 protected:
  CheckpointedRunTest() {
    std::filesystem::remove_all(options_.checkpoints);
    experiment_ = *ParseExperiment(R"(
model:
  name: custom
  blocks:
    - {name: a, layers: [{kind: flatten}, {kind: linear, name: fc, out: 1, bias: false}]}
    - {name: b, layers: [{kind: linear, name: fc, out: 10, bias: false}]}
data: {name: digits, batch_size: 3}
pipeline: {cuts: [a]}
optimizer: {lr: 0.1}
checkpoint: {every_steps: 3, keep: 10}
epochs: 2
)",
                                   "test", {});
    first_.state = {FileOf("a.fc.weight", {1, 64})};
    last_.state = {FileOf("b.fc.weight", {10, 1})};
    last_.train = [](const TrainRequest& request, grpc::ServerContext*, FakeStage::Writer* writer) {
      ReportSteps(request, writer);
      return grpc::Status::OK;
    };
    options_.run = "run";
  }
  static std::pair<StatePart, std::string> FileOf(const std::string& name,
                                                  const std::vector<int64_t>& shape) {
    static const std::string bytes(4 * 64, 'x');
    const auto elements = static_cast<size_t>(shape[0] * shape[1]);
    std::pair<StatePart, std::string> file;
    file.first.set_tensors("model");
    const std::string_view data = std::string_view(bytes).substr(0, 4 * elements);
    const absl::Status written =
        WriteSafetensors({{}, {{name, "F32", shape, data}}}, 100, [&](std::string_view piece) {
          file.second += piece;
          return absl::OkStatus();
        });
    EXPECT_TRUE(written.ok()) << written;
    return file;
  }
  absl::Status TrainOn() {
    FleetOptions options;
    options.grace = absl::Milliseconds(50);
    options.patience = absl::Milliseconds(500);
    fleet_ = std::make_unique<Fleet>(Addresses(), "run", options);
    const absl::Status status =
        RunExperiment(experiment_, fleet_.get(), &observer_, &summary_, options_);
    fleet_->Release();
    return status;
  }
  std::vector<std::string> Addresses() const { return {first_.address(), last_.address()}; }
  std::vector<uint64_t> Checkpoints() const { return *ListCheckpoints(options_.checkpoints); }
  void LetStagesBeReplaced() {
    options_.next_generation = [this](const Failure& loss) -> absl::StatusOr<Fleet*> {
      losses_.push_back(loss.stage);
      FleetOptions options;
      options.generation = losses_.size() + 1;
      options.grace = absl::Milliseconds(50);
      fleet_ = std::make_unique<Fleet>(Addresses(), "run", options);
      return fleet_.get();
    };
  }
  // The last stage is lost when it is asked for that step, so often; the checkpoint of the step
  // before is on the disk then.
  void LoseAt(uint64_t step, int times) {
    last_.train = [this, step, left = std::make_shared<std::atomic<int>>(times)](
                      const TrainRequest& request, grpc::ServerContext*,
                      FakeStage::Writer* writer) {
      const bool is_met = request.first_step() <= step && step <= request.last_step();
      if (is_met && left->fetch_sub(1) > 0) {
        const std::string before = CheckpointPath(options_.checkpoints, step - 1);
        while (step > 1 && !std::filesystem::exists(before)) absl::SleepFor(absl::Milliseconds(1));
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed");
      }
      ReportSteps(request, writer);
      return grpc::Status::OK;
    };
  }

  RunOptions options_ = [] {
    RunOptions options;
    options.checkpoints = ::testing::TempDir() + "/run_test/checkpoints";
    return options;
  }();
  std::unique_ptr<Fleet> fleet_;
  std::vector<int> losses_;  // stages
};

TEST_F(CheckpointedRunTest, AnEpochIsTrainedInPartsThatEndWhereACheckpointIsDue) {
  ASSERT_TRUE(TrainOn().ok());
  EXPECT_THAT(Checkpoints(), ElementsAre(2, 3, 4));  // 3 by steps, 2 and 4 by epochs
  EXPECT_EQ(observer_.steps.size(), 4u);
  EXPECT_EQ(summary_.epochs_size(), 2);
  const auto manifest = ReadManifest(CheckpointPath(options_.checkpoints, 3));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->epoch(), 2u);
  EXPECT_EQ(manifest->progress().epochs_size(), 1);
  EXPECT_EQ(manifest->progress().sums().samples(), 3u);
  EXPECT_EQ(manifest->files_size(), 2);
}

TEST_F(CheckpointedRunTest, AnInterruptedEvaluationLeavesACheckpointOfTheStepBefore) {
  experiment_.mutable_checkpoint()->set_every_steps(100);
  experiment_.mutable_checkpoint()->set_every_epochs(2);
  first_.evaluate = [this](const EvaluateRequest& request, grpc::ServerContext* context,
                           FakeStage::Writer*) {
    if (request.epoch() == 1) return grpc::Status::OK;
    fleet_->Interrupt();
    return FakeStage::Hang(context);
  };
  experiment_.set_epochs(3);
  EXPECT_TRUE(absl::IsCancelled(TrainOn()));
  EXPECT_THAT(Checkpoints(), ElementsAre(4));

  first_.evaluate = [this](const EvaluateRequest& request, grpc::ServerContext* context,
                           FakeStage::Writer*) {
    if (request.epoch() < 3) return grpc::Status::OK;
    fleet_->Interrupt();
    return FakeStage::Hang(context);
  };
  summary_.Clear();
  experiment_.mutable_checkpoint()->set_every_epochs(0);
  EXPECT_TRUE(absl::IsCancelled(TrainOn()));
  EXPECT_THAT(Checkpoints(), ElementsAre(4, 6));
  EXPECT_EQ(ReadManifest(CheckpointPath(options_.checkpoints, 6))->progress().epochs_size(), 2);
}

TEST_F(CheckpointedRunTest, AResumedRunTrainsWhatIsLeftAndKnowsWhatWas) {
  ASSERT_TRUE(TrainOn().ok());
  std::filesystem::remove_all(CheckpointPath(options_.checkpoints, 4));
  options_.from = *NewestCheckpoint(options_.checkpoints);
  const Summary whole = summary_;
  summary_.Clear();
  observer_.steps.clear();
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(observer_.steps.size(), 1u);
  EXPECT_EQ(observer_.steps[0].step(), 4u);
  EXPECT_EQ(first_.restored_step(), 3u);
  ASSERT_EQ(first_.restored().size(), 1u);
  EXPECT_EQ(first_.restored()[0].first.tensors(), "model");
  ASSERT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(summary_.epochs(1).train().loss(), whole.epochs(1).train().loss());
  EXPECT_EQ(summary_.epochs(0).SerializeAsString(), whole.epochs(0).SerializeAsString());
  ASSERT_EQ(summary_.events_size(), 1);
  EXPECT_EQ(summary_.events(0).type(), "resumed");
}

TEST_F(CheckpointedRunTest, ALossIsMadeGoodFromTheLastCheckpoint) {
  LetStagesBeReplaced();
  LoseAt(/*step=*/4, /*times=*/1);
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(losses_, ElementsAre(1));
  EXPECT_EQ(first_.restored_step(), 3u);
  ASSERT_EQ(summary_.events_size(), 1);
  EXPECT_EQ(summary_.events(0).type(), "restarted");
  EXPECT_EQ(summary_.events(0).stage(), 1u);
  EXPECT_EQ(summary_.events(0).step(), 3u);
  EXPECT_TRUE(summary_.events(0).has_seconds());
  EXPECT_EQ(summary_.epochs_size(), 2);
}

TEST_F(CheckpointedRunTest, BeforeTheFirstCheckpointTheRunBeginsAnew) {
  LetStagesBeReplaced();
  LoseAt(/*step=*/1, /*times=*/1);
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(summary_.events(0).step(), 0u);
  EXPECT_TRUE(first_.restored().empty());
  EXPECT_EQ(summary_.epochs_size(), 2);
}

TEST_F(CheckpointedRunTest, TooManyLossesEndTheRun) {
  LetStagesBeReplaced();
  LoseAt(/*step=*/4, /*times=*/100);
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr("Socket closed"));
  EXPECT_EQ(losses_.size(), 3u);  // restarts.max
}

TEST_F(CheckpointedRunTest, AnErrorOfTheWorkItselfIsNoLoss) {
  LetStagesBeReplaced();
  last_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "the loss is nan");
  };
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr("the loss is nan"));
  EXPECT_TRUE(losses_.empty());
}

TEST_F(CheckpointedRunTest, AStageThatDiesBeforeItIsLeasedIsLost) {
  LetStagesBeReplaced();
  std::atomic<bool> dies = true;
  first_.acquire = [&] {
    if (!dies.exchange(false)) return grpc::Status::OK;
    fleet_->Fail({0, Failure::Kind::kDead, absl::UnavailableError("it died")});
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  const absl::Status status = TrainOn();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(losses_, ElementsAre(0));
}

TEST_F(CheckpointedRunTest, AStageThatWasNeverThereIsNotLost) {
  LetStagesBeReplaced();
  first_.acquire = [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not there"); };
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr("not there"));
  EXPECT_TRUE(losses_.empty());
}

TEST_F(CheckpointedRunTest, ACheckpointThatCannotBeWrittenEndsTheRunAndNamesTheFile) {
  std::filesystem::create_directories(std::filesystem::path(options_.checkpoints).parent_path());
  std::ofstream(options_.checkpoints) << "no folder";
  LetStagesBeReplaced();
  EXPECT_THAT(std::string(TrainOn().message()), HasSubstr(options_.checkpoints));
  EXPECT_TRUE(losses_.empty());
}

}  // namespace
}  // namespace thinwire
