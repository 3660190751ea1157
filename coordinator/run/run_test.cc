#include "coordinator/run/run.h"

#include <cstdlib>

#include "base/steady_clock_id.h"
#include "base/steady_time.h"
#include "coordinator/run/run_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

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

TEST_F(RunTest, OfLabelledSentencesTheCountsAndTheMeasuresOfTheTaskAreKept) {
  std::vector<uint64_t> confusion = {1, 0, 1, 0};
  last_.evaluate = [&confusion](const EvaluateRequest&, grpc::ServerContext*,
                                FakeStage::Writer* writer) {
    StageEvent event;
    event.mutable_evaluation()->set_correct(1);
    event.mutable_evaluation()->set_samples(2);
    *event.mutable_evaluation()->mutable_confusion() = {confusion.begin(), confusion.end()};
    writer->Write(event);
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Train().ok());
  EXPECT_FALSE(summary_.epochs(1).test().compressed().has_classes()) << "no task";
  summary_.Clear();
  experiment_.mutable_data()->set_task("cola");
  ASSERT_TRUE(Train().ok());
  const ClassMeasures& classes = summary_.epochs(1).test().uncompressed().classes();
  EXPECT_THAT(classes.confusion(), ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(classes.matthews(), 0);
  EXPECT_FALSE(classes.has_f1());
  confusion = {1, 0};
  summary_.Clear();
  EXPECT_THAT(std::string(Train().message()), HasSubstr("2 counts of 1 predictions, want 4 of 2"));
}

TEST_F(RunTest, OfScoresCorrelationsAreKeptAndNoAccuracy) {
  last_.train = [](const TrainRequest& request, grpc::ServerContext*, FakeStage::Writer* writer) {
    for (const uint64_t step : {2 * request.epoch() - 1, 2 * request.epoch()}) {
      StageEvent event = Step(step, /*loss=*/2, /*correct=*/0, /*samples=*/step % 2 == 1 ? 3 : 1);
      event.mutable_step()->clear_correct();
      writer->Write(event);
    }
    return grpc::Status::OK;
  };
  last_.evaluate = [](const EvaluateRequest&, grpc::ServerContext*, FakeStage::Writer* writer) {
    StageEvent event;
    event.mutable_evaluation()->set_samples(2);
    for (const float prediction : {1.5f, 1.0f}) {
      event.mutable_evaluation()->add_predictions(prediction);
      event.mutable_evaluation()->add_scores(prediction > 1 ? 10 : 20);
    }
    writer->Write(event);
    return grpc::Status::OK;
  };
  experiment_.mutable_data()->set_task("stsb");
  const absl::Status status = Train();
  ASSERT_TRUE(status.ok()) << status;
  const Measured& measured = summary_.epochs(1).test().uncompressed();
  EXPECT_NEAR(measured.scores().pearson(), -1, 1e-12);
  EXPECT_NEAR(measured.scores().spearman(), -1, 1e-12);
  EXPECT_FALSE(measured.has_accuracy());
  EXPECT_FALSE(measured.has_classes());
  EXPECT_FALSE(summary_.epochs(1).train().has_accuracy());
  EXPECT_FALSE(observer_.steps[0].has_accuracy());
}

TEST_F(RunTest, ObserversSeeEveryStepAndEpochAndTheTotals) {
  ASSERT_TRUE(Train().ok());
  ASSERT_EQ(observer_.steps.size(), 4u);
  EXPECT_EQ(observer_.steps[3].step(), 4u);
  EXPECT_EQ(observer_.steps[3].accuracy(), 1.0);
  EXPECT_EQ(observer_.epochs.size(), 2u);
  EXPECT_EQ(observer_.last_totals.boundaries[0].activations().wire_bytes(), 50u);
}

// Returns a report of `steps`: step i takes the millisecond that begins i ms after `clock` (ns).
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

// Both stages report each epoch's steps as traced, by their own clocks.
class TracedRunTest : public RunTest {
 protected:
  TracedRunTest() {
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
};

RunOptions Tracing(uint64_t first, uint64_t last) {
  RunOptions options;
  options.trace.emplace();
  options.trace->set_first(first);
  options.trace->set_last(last);
  return options;
}

TEST_F(TracedRunTest, TracedStepsAreToldOnOneClock) {
  last_.clock_offset = -3'000'000'000;
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

TEST_F(TracedRunTest, ATraceAcrossEpochsIsToldAfterEachAndOnceMoreWhole) {
  ASSERT_TRUE(Train(Tracing(2, 3)).ok());
  ASSERT_EQ(observer_.traces.size(), 3u);
  EXPECT_EQ(observer_.traces[0].steps.last(), 2u);
  EXPECT_EQ(observer_.traces[0].stages[0].slices.size(), 2u);
  for (const size_t whole : {1, 2}) {
    EXPECT_EQ(observer_.traces[whole].steps.last(), 3u);
    EXPECT_EQ(observer_.traces[whole].stages[0].slices.size(), 4u);
  }
}

TEST_F(TracedRunTest, StagesOfThisMachineHaveItsClock) {
  first_.clock = last_.clock = SteadyClockId();
  ASSERT_TRUE(Train(Tracing(1, 1)).ok());
  for (const StageTrace& stage : observer_.traces.back().stages) {
    EXPECT_EQ(stage.clock.offset, 0);
    EXPECT_EQ(stage.clock.uncertainty, 0);
  }
}

TEST_F(TracedRunTest, AStageWhoseClockIsUnknownHasNoSlices) {
  last_.clock = "";
  ASSERT_TRUE(Train(Tracing(1, 1)).ok());
  EXPECT_EQ(observer_.traces.back().stages[1].slices.size(), 0u);
  EXPECT_GT(observer_.traces.back().stages[1].dropped, 0u);
}

TEST_F(TracedRunTest, AStepToTraceThatTheRunDoesNotHaveIsNamedBeforeTheFirst) {
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

TEST_F(RunTest, OneLineWarnsOfGpusWithDifferentLibraries) {
  last_.configured.mutable_device()->set_libraries("CUDA 13.0, cuDNN 9.19.0");
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a CPU has none";
  summary_.Clear();
  first_.configured.mutable_device()->set_libraries("CUDA 13.0, cuDNN 9.25.0");
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "thinwire: warning: stage 0 (" + first_.address() +
                ") has \"CUDA 13.0, cuDNN 9.25.0\", stage 1 (" + last_.address() +
                ") has \"CUDA 13.0, cuDNN 9.19.0\"\n");
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
  last_.captured = std::string(2025, 'x');  // one byte more than the limit and 1024 of header
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

}  // namespace
}  // namespace thinwire
