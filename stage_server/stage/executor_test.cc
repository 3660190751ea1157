#include "stage_server/stage/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/clock.h"
#include "schedule/schedule_testing.h"
#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kExperiment[] = R"(
name: executor
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 20, limit: 50, test_limit: 90}
pipeline: {cuts: [stem, layer2], microbatches: 3, threads: 1}
compression: {activations: {codec: topk, ratio: 0.3}, gradients: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
epochs: 1
)";

struct SmallStages : Stages {
  explicit SmallStages(const std::vector<std::string>& overrides,
                       const BackendOf& backend_of = CpuBackend)
      : Stages(kExperiment, overrides, backend_of) {}
};

class ExecutorTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ExecutorTest, StagesOnThreadsTrainAndEvaluateLikeOne) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  SmallStages one({schedule, "pipeline.stages=1"}), three({schedule, "pipeline.stages=3"});
  const std::vector<double> losses = one.Train();
  ASSERT_THAT(losses, SizeIs(3));
  EXPECT_THAT(three.Train(), ElementsAreArray(losses));
  for (bool compressed : {true, false}) {
    const EvaluationReport want = one.Evaluate(compressed), got = three.Evaluate(compressed);
    EXPECT_EQ(got.samples(), 90u);
    EXPECT_EQ(got.loss(), want.loss());
    EXPECT_EQ(got.correct(), want.correct());
    EXPECT_THAT(got.confusion(), ElementsAreArray(want.confusion()));
  }
  const EvaluationReport want = one.Evaluate(false, 30), got = three.Evaluate(false, 30);
  EXPECT_EQ(got.loss(), want.loss());
  EXPECT_NE(got.loss(), one.Evaluate(false).loss());
  EXPECT_NE(got.loss(), one.Evaluate(false, 50).loss());
}

TEST_P(ExecutorTest, BlocksThatRunAgainTrainTheSameBits) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  SmallStages keeps({schedule}), again({schedule, "pipeline.recompute=blocks"});
  for (uint32_t epoch : {1, 2}) {
    EXPECT_THAT(again.Train(epoch), ElementsAreArray(keeps.Train(epoch)));
    EXPECT_THAT(again.Values(), ElementsAreArray(keeps.Values()));
  }
}

constexpr char kDropout[] = R"(
name: executor
model:
  name: custom
  blocks:
    - name: stem
      layers: [{kind: flatten}, {kind: linear, name: l, out: 16}, {kind: dropout, name: d, rate: 0.3}]
    - name: head
      layers: [{kind: relu}, {kind: dropout, name: d, rate: 0.2}, {kind: linear, name: l, out: 10}]
data: {name: digits, batch_size: 20, limit: 50, test_limit: 90}
pipeline: {cuts: stem, microbatches: 3, threads: 1}
optimizer: {name: sgd, lr: 0.1}
epochs: 1
)";

TEST_P(ExecutorTest, WhatIsDroppedDependsOnNeitherStagesNorMicrobatches) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  Stages one(kDropout, {schedule, "pipeline.stages=1"}), two(kDropout, {schedule}),
      whole(kDropout, {schedule, "pipeline.microbatches=1"}),
      other(kDropout, {schedule, "seeds.dropout=9"});
  const std::vector<double> losses = one.Train();
  EXPECT_THAT(two.Train(), ElementsAreArray(losses));
  EXPECT_THAT(two.Values(), ElementsAreArray(one.Values()));
  const std::vector<double> of_whole = whole.Train(), of_other = other.Train();
  for (size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(of_whole[step], losses[step], 1e-5) << step;
    EXPECT_GT(std::abs(of_other[step] - losses[step]), 1e-3) << step;
  }
}

constexpr char kPooledHead[] = R"(
name: executor
model:
  name: custom
  blocks:
    - name: stem
      layers: [{kind: conv, name: c, out: 8, kernel: 3, padding: 1}, {kind: relu}]
    - name: head
      layers: [{kind: conv, name: c, out: 10, kernel: 3, padding: 1}, {kind: global_avg_pool}, {kind: relu}]
data: {name: digits, batch_size: 20, limit: 50, test_limit: 90}
pipeline: {cuts: stem, microbatches: 2, threads: 1}
optimizer: {name: sgd, lr: 0.1}
epochs: 1
)";

TEST_P(ExecutorTest, AModelMayEndInAnyLayer) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  Stages one(kPooledHead, {schedule, "pipeline.stages=1"}), two(kPooledHead, {schedule});
  const std::vector<double> losses = one.Train();
  EXPECT_THAT(losses, SizeIs(3));
  EXPECT_THAT(two.Train(), ElementsAreArray(losses));
  EXPECT_THAT(two.Values(), ElementsAreArray(one.Values()));
}

TEST(ExecutorTest, EvaluationCountsWhichClassIsTakenForWhich) {
  SmallStages stages({});
  stages.Train();
  const DataSplits digits = *LoadData([] {
    DataOptions options;
    options.name = "digits";
    options.test_limit = 90;
    return options;
  }());
  for (const uint64_t recalibration_samples : {0, 30}) {  // counts are not added to those before
    const EvaluationReport report = stages.Evaluate(false, recalibration_samples);
    ASSERT_THAT(report.confusion(), SizeIs(10 * 10));
    std::vector<uint64_t> wanted(10), found(10);
    uint64_t right = 0;
    for (int64_t sample = 0; sample < 90; ++sample) {
      int32_t label = 0;
      digits.test->Labels(sample, {}, absl::MakeSpan(&label, 1));
      ++wanted[static_cast<size_t>(label)];
    }
    for (int label = 0; label < 10; ++label) {
      for (int prediction = 0; prediction < 10; ++prediction) {
        found[static_cast<size_t>(label)] += report.confusion(10 * label + prediction);
      }
      right += report.confusion(11 * label);
    }
    EXPECT_EQ(found, wanted);
    EXPECT_EQ(right, report.correct());
  }
}

TEST_P(ExecutorTest, EvaluationChangesNothing) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  SmallStages plain({schedule}), evaluated({schedule});
  EXPECT_THAT(evaluated.Train(), ElementsAreArray(plain.Train()));
  evaluated.Evaluate(true);
  evaluated.Evaluate(false);
  evaluated.Evaluate(false, 50);
  EXPECT_THAT(evaluated.Values(), ElementsAreArray(plain.Values()));
  EXPECT_EQ(evaluated.executor(0).last_step(), plain.executor(0).last_step());
  EXPECT_THAT(evaluated.Train(2), ElementsAreArray(plain.Train(2)));
  EXPECT_THAT(evaluated.Values(), ElementsAreArray(plain.Values()));
  for (const LocalStage::End& end : evaluated.stage(0).ends()) {
    if (end.sender == nullptr) continue;
    EXPECT_EQ(end.sender->statistics().train.messages,
              plain.stage(0).ends()[0].sender->statistics().train.messages);
    EXPECT_GT(end.sender->statistics().evaluate.messages, 0u);
  }
}

TEST_P(ExecutorTest, TrainingThatEndsEarlyLeavesTheSameParametersInAnyNumberOfStages) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  SmallStages one({schedule, "pipeline.stages=1"}), three({schedule, "pipeline.stages=3"});
  one.executor(0).gate().EndAfter(2);
  for (int stage : {0, 1, 2}) three.executor(stage).gate().EndAfter(2);
  const std::vector<double> losses = one.Train();
  EXPECT_THAT(losses, SizeIs(2));
  EXPECT_THAT(three.Train(), ElementsAreArray(losses));
  EXPECT_THAT(three.Values(), ElementsAreArray(one.Values()));
}

TEST_P(ExecutorTest, CapturesDependNeitherOnTheStagesNorOnThemselves) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  const std::string capture = "capture.steps=[2, 3]";
  SmallStages plain({schedule}), one({schedule, capture, "pipeline.stages=1"}),
      three({schedule, capture, "pipeline.stages=3"});
  const std::vector<double> losses = plain.Train();
  EXPECT_THAT(one.Train(), ElementsAreArray(losses));
  EXPECT_THAT(three.Train(), ElementsAreArray(losses));
  EXPECT_THAT(plain.TakeCaptures(2), IsEmpty());
  EXPECT_THAT(three.TakeCaptures(1), IsEmpty());
  for (uint64_t step : {2, 3}) {
    const auto captured = one.TakeCaptures(step);
    EXPECT_THAT(captured, SizeIs(2 * 2 * 3));  // directions, cuts, microbatches
    EXPECT_EQ(three.TakeCaptures(step), captured);
  }
}

// Names the thread of one stage that a slice belongs to.
using ThreadKey = std::tuple<Slice::Thread, int, Direction>;

void ExpectNested(std::vector<Slice> slices) {
  std::map<ThreadKey, std::vector<Slice>> open;
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.begin < b.begin || (!(b.begin < a.begin) && a.end > b.end);
  });
  for (const Slice& slice : slices) {
    const bool is_executor = slice.thread == Slice::Thread::kExecutor;
    auto& outer =
        open[is_executor ? ThreadKey{} : ThreadKey{slice.thread, slice.cut, slice.direction}];
    while (!outer.empty() && slice.begin >= outer.back().end) outer.pop_back();
    if (!outer.empty()) {
      EXPECT_GE(outer.back().end, slice.end) << slice.name;
    }
    outer.push_back(slice);
  }
}

TEST_P(ExecutorTest, ATraceHasEveryActionAndEveryMessageAndChangesNothing) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  for (const char* count : {"pipeline.stages=1", "pipeline.stages=3"}) {
    SCOPED_TRACE(count);
    std::vector<std::shared_ptr<StepTrace>> traces;
    for (int i = 0; i < 3; ++i) traces.push_back(std::make_shared<StepTrace>(2, 2, 1000));
    SmallStages plain({schedule, count});
    Stages traced(kExperiment, {schedule, count}, CpuBackend,
                  [&](StageSpec* spec) { spec->trace = traces[spec->stage]; });
    EXPECT_THAT(traced.Train(), ElementsAreArray(plain.Train()));
    EXPECT_THAT(traced.Values(), ElementsAreArray(plain.Values()));
    traced.Evaluate(true);
    std::map<std::string, int> names;
    using Message = std::tuple<int, Direction, int>;
    std::map<Message, SteadyTime> sent, arrived;
    for (size_t i = 0; i < traced.size(); ++i) {
      const StepTrace::Taken taken = traces[i]->Take();
      EXPECT_EQ(taken.dropped, 0u);
      ExpectNested(taken.slices);
      for (const Slice& slice : taken.slices) {
        EXPECT_EQ(slice.step, 2u);
        EXPECT_GE(slice.end, slice.begin);
        ++names[slice.name];
        const Message message = {slice.cut, slice.direction, slice.microbatch};
        if (slice.name == std::string("send")) sent[message] = slice.begin;
        if (slice.name == std::string("decode")) arrived[message] = slice.ready;
        EXPECT_GE(slice.begin, slice.ready) << slice.name;
      }
    }
    // Three segments, two cuts, three microbatches.
    EXPECT_EQ(names["forward"], 9);
    const bool splits = GetParam() == "zero_bubble";
    EXPECT_EQ(names[splits ? "backward input" : "backward"], 9);
    EXPECT_EQ(names["backward weight"], splits ? 9 : 0);
    EXPECT_EQ(names["optimizer"], 3);
    EXPECT_EQ(names["forward loss"], 3);
    EXPECT_EQ(names["encode"], 12);
    EXPECT_EQ(names["send"], 12);
    EXPECT_EQ(names["decode"], 12);
    EXPECT_EQ(names["receive_wait"], traced.size() == 1 ? 0 : 12);
    EXPECT_EQ(names["step"], static_cast<int>(traced.size()));
    ASSERT_EQ(sent.size(), 12u);
    ASSERT_EQ(arrived.size(), 12u);
    for (const auto& [message, time] : sent) EXPECT_GE(arrived[message], time);
  }
}

TEST_P(ExecutorTest, GradientsLeaveTheRunAsItWas) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  SmallStages plain({schedule}), probed({schedule});
  probed.Gradients(1, true);
  probed.Gradients(3, false);
  EXPECT_THAT(probed.Values(), ElementsAreArray(plain.Values()));
  EXPECT_THAT(probed.Train(), ElementsAreArray(plain.Train()));
  EXPECT_THAT(probed.Values(), ElementsAreArray(plain.Values()));
}

TEST_P(ExecutorTest, GradientsAreThoseOfTheStepAndDependOnTheCodec) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  SmallStages one({schedule, "pipeline.stages=1"}), three({schedule, "pipeline.stages=3"});
  const std::vector<float> raw = one.Gradients(2, false);
  EXPECT_THAT(one.Gradients(2, false), ElementsAreArray(raw));
  EXPECT_THAT(three.Gradients(2, false), ElementsAreArray(raw));
  const std::vector<float> compressed = one.Gradients(2, true);
  EXPECT_THAT(three.Gradients(2, true), ElementsAreArray(compressed));
  EXPECT_NE(raw, compressed);
  EXPECT_NE(raw, one.Gradients(1, false));
}

TEST_P(ExecutorTest, ADeviceThatIsNotTheHostDoesTheSame) {
  const std::string schedule = "pipeline.schedule=" + GetParam();
  for (const char* codec : {"{codec: topk, ratio: 0.3}", "{codec: none}"}) {
    SCOPED_TRACE(codec);
    const std::vector<std::string> overrides = {schedule, "capture.steps=2",
                                                std::string("compression.activations=") + codec,
                                                std::string("compression.gradients=") + codec};
    SmallStages host(overrides), late(overrides, [](int) { return NewLateBackend(); });
    EXPECT_THAT(late.Gradients(1, true), ElementsAreArray(host.Gradients(1, true)));
    EXPECT_THAT(late.Train(), ElementsAreArray(host.Train()));
    EXPECT_EQ(late.Evaluate(true).loss(), host.Evaluate(true).loss());
    EXPECT_EQ(late.Evaluate(false).loss(), host.Evaluate(false).loss());
    EXPECT_EQ(late.Evaluate(false, 30).loss(), host.Evaluate(false, 30).loss());
    EXPECT_EQ(late.TakeCaptures(2), host.TakeCaptures(2));
    EXPECT_THAT(late.Values(), ElementsAreArray(host.Values()));
  }
}

// Plain SGD with learning rate 1 subtracts exactly the gradient.
TEST(ExecutorTest, AStepSubtractsTheGradient) {
  const std::vector<std::string> sgd = {"pipeline.stages=1", "optimizer.momentum=0",
                                        "optimizer.lr=1", "data.limit=20"};
  SmallStages probed(sgd), trained(sgd);
  const std::vector<float> gradients = probed.Gradients(1, true);
  trained.Train();
  std::vector<float> before, after;
  for (const auto& [stages, values] : {std::pair(&probed, &before), std::pair(&trained, &after)}) {
    for (const Parameter* parameter : stages->stage(0).parameters()) {
      if (!parameter->spec.is_trained()) continue;
      const auto floats = parameter->value.floats();
      values->insert(values->end(), floats.begin(), floats.end());
    }
  }
  ASSERT_EQ(before.size(), gradients.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i] - gradients[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Schedules, ExecutorTest, ::testing::ValuesIn(PlainSchedulesForTests()));

// The learning rate falls to nearly nothing, so that running statistics fit the parameters.
TEST(ExecutorTest, WithoutACodecRecalibrationChangesLittle) {
  SmallStages stages({"pipeline.stages=1", "pipeline.microbatches=1", "data.limit=1000",
                      "data.batch_size=50", "data.augment=none", "epochs=6",
                      "lr_schedule.name=cosine", "compression.activations.codec=none",
                      "compression.gradients.codec=none"});
  for (uint32_t epoch = 1; epoch <= 6; ++epoch) stages.Train(epoch);
  const EvaluationReport plain = stages.Evaluate(false),
                         recalibrated = stages.Evaluate(false, 1000);
  EXPECT_GT(plain.correct(), 70u);  // of 90
  EXPECT_NEAR(recalibrated.correct(), plain.correct(), 4);
  EXPECT_NEAR(recalibrated.loss(), plain.loss(), 0.05);
}

// Calibration is to codecs what training messages are, and nothing to anything else.
TEST(ExecutorTest, CalibrationLeavesCodecsWhatTrainingWould) {
  SmallStages stages({"pipeline.stages=3",
                      "compression.activations={codec: uniform, bits: 4, "
                      "scope: sample, outliers: 1, feedback: ef21}"});
  const std::vector<float> before = stages.Values();
  const BoundarySender& sender = stages.sender("layer2", DIRECTION_ACTIVATION);
  const auto payload_bytes = [&](bool calibrates, uint64_t samples) {
    const uint64_t sent = sender.statistics().evaluate.payload_bytes;
    const auto statuses = stages.AtEveryStage([&](size_t i) {
      EvaluateRequest request;
      request.set_epoch(1);
      request.set_compressed(true);
      request.set_calibrates(calibrates);
      request.set_samples(samples);
      return stages.executor(i).Evaluate(request).status();
    });
    EXPECT_THAT(statuses, Each(absl::OkStatus()));
    return sender.statistics().evaluate.payload_bytes - sent;
  };
  const uint64_t own = payload_bytes(false, 90);
  EXPECT_EQ(payload_bytes(false, 90), own) << "evaluation leaves nothing";
  payload_bytes(true, 20);
  EXPECT_EQ(payload_bytes(false, 90), own - 5 * 4) << "five messages without their channels";
  EXPECT_THAT(stages.Values(), ElementsAreArray(before));
}

TEST(ExecutorTest, AFailedRecalibrationPutsTheStatisticsBack) {
  SmallStages stages({"pipeline.stages=3", "pipeline.deadline_seconds=0.05"});
  const std::vector<float> before = stages.Values();
  EvaluateRequest request;
  request.set_epoch(1);
  request.set_samples(90);
  request.set_recalibration_samples(50);
  EXPECT_FALSE(stages.executor(0).Evaluate(request).ok());  // nobody acknowledges its batches
  EXPECT_THAT(stages.Values(), ElementsAreArray(before));
}

TEST(ExecutorTest, StopEndsAWaitForANeighbour) {
  SmallStages stages({"pipeline.stages=3", "pipeline.deadline_seconds=300"});
  const BoundarySender& sender = stages.sender("layer2", DIRECTION_ACTIVATION);
  const auto statuses = stages.AtEveryStage([&](size_t i) {
    if (i < 2) return stages.executor(i).Train(stages.Epoch(1), [](const StepReport&) {});
    // Under 1f1b stage 1 waits for a gradient once it has sent two activations.
    while (sender.statistics().train.messages < 2) absl::SleepFor(absl::Milliseconds(1));
    stages.executor(1).Stop(absl::CancelledError("enough"));
    return absl::OkStatus();
  });
  EXPECT_FALSE(statuses[0].ok());
  EXPECT_EQ(statuses[1], absl::CancelledError("enough"));
}

TEST(ExecutorTest, ANeighbourIsAttachedOnceAndNotAfterTheLinksWereClosed) {
  SmallStages stages({"pipeline.stages=3"});
  const auto attach = [&stages] {
    LocalStage& stage = stages.stage(0);
    return stage.Attach(NeighbourEnds(stage.spec()).front().end, NewMemoryLinks({}, {}).first);
  };
  EXPECT_EQ(attach(),
            absl::FailedPreconditionError("cut stem: stage 0 is connected there already"));
  stages.stage(0).CloseLinks(absl::CancelledError("enough"));
  EXPECT_EQ(attach(), absl::CancelledError("enough"));
}

TEST(ExecutorTest, ASilentNeighbourIsNamedAtTheDeadline) {
  SmallStages stages({"pipeline.stages=3", "pipeline.deadline_seconds=0.05"});
  const absl::Status status = stages.executor(1).Train(stages.Epoch(1), [](const StepReport&) {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("upstream"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("microbatch 0"));
}

TEST(ExecutorTest, ALossThatIsNoNumberNamesStageAndStep) {
  SmallStages stages({"optimizer.lr=1e30", "compression.activations.codec=none",
                      "compression.gradients.codec=none"});
  const auto statuses = stages.AtEveryStage([&](size_t i) {
    return stages.executor(i).Train(stages.Epoch(1), [](const StepReport&) {});
  });
  EXPECT_THAT(std::string(statuses[2].message()), HasSubstr("stage 2: the loss is"));
  EXPECT_THAT(std::string(statuses[2].message()), HasSubstr("at step 2 of epoch 1"));
  EXPECT_FALSE(statuses[0].ok());  // and nobody waits for ever
}

// Reads the values that optimizers change at the first stage.
std::vector<float> TrainableValues(SmallStages* stages) {
  std::vector<float> values;
  for (const Parameter* parameter : stages->stage(0).parameters()) {
    if (!parameter->spec.is_trained()) continue;
    const Tensor& value = parameter->value;
    values.resize(values.size() + value.elements());
    float* const copy = values.data() + values.size() - value.elements();
    EXPECT_TRUE(value.device()->CopyToHost(copy, value.data(), value.bytes()).ok());
  }
  return values;
}

const std::vector<std::string> kOneSegment = {"pipeline.stages=1", "pipeline.cuts=[]"};

TEST(ExecutorTest, NoUpdateComesOfALossThatIsNoNumber) {
  for (const BackendOf& backend :
       {BackendOf(CpuBackend), BackendOf([](int) { return NewLateBackend(); })}) {
    SmallStages stages({kOneSegment[0], kOneSegment[1], "optimizer.lr=1e30"}, backend);
    stages.TrainSteps(1, 1, 1);
    const std::vector<float> before = TrainableValues(&stages);
    const absl::Status status = stages.TryTrain(1)[0];
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("stage 0: the loss is"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("at step 1 of epoch 1"));
    EXPECT_THAT(TrainableValues(&stages), ElementsAreArray(before));
  }
}

TEST(ExecutorTest, AModelThatIsOneSegmentIsClippedLikeOneInParts) {
  const std::vector<std::string> common = {"compression.activations.codec=none",
                                           "compression.gradients.codec=none"};
  for (const char* clip : {"optimizer.clip_norm=0.125", "optimizer.clip_norm=1000"}) {
    SmallStages whole({common[0], common[1], clip, kOneSegment[0], kOneSegment[1]});
    SmallStages parts({common[0], common[1], clip, "pipeline.stages=3"});
    EXPECT_THAT(whole.Train(), ElementsAreArray(parts.Train()));
    EXPECT_THAT(whole.Values(), ElementsAreArray(parts.Values()));
  }
}

TEST(ExecutorTest, AGradientThatIsNoNumberIsNamedAndUpdatesNothing) {
  SmallStages stages({kOneSegment[0], kOneSegment[1], "optimizer.clip_norm=1"});
  const Parameter* const broken = stages.stage(0).parameters()[0];
  broken->gradient.floats()[0] = std::nanf("");
  const std::vector<float> before = TrainableValues(&stages);
  const absl::Status status = stages.TryTrain(1)[0];
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 0: at step 1 of epoch 1 with the gradient of " + broken->spec.name));
  EXPECT_THAT(TrainableValues(&stages), ElementsAreArray(before));
}

}  // namespace
}  // namespace thinwire
