// Tests a weight with a copy in the last segment, and the norm of the whole model's gradient.
// Neither may depend on how segments are spread over stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "nn/gradient_norm.h"
#include "schedule/schedule_testing.h"
#include "stage_server/stage/join_testing.h"
#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/safetensors.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// head.fc.weight becomes a copy of in.fc.weight: [64, 64].
constexpr char kExperiment[] = R"(
name: tied
model:
  name: custom
  classes: 64
  blocks:
    - {name: in, layers: [{kind: flatten}, {kind: linear, name: fc, out: 64}, {kind: relu}]}
    - {name: b, layers: [{kind: linear, name: fc, out: 32}, {kind: relu}]}
    - {name: c, layers: [{kind: linear, name: fc, out: 64}, {kind: relu}]}
    - {name: head, layers: [{kind: linear, name: fc, out: 64}]}
data: {name: digits, batch_size: 20, limit: 50, test_limit: 90}
pipeline: {cuts: [in, b, c], microbatches: 3, threads: 1}
optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, decay: matrices, clip_norm: 0.1}
epochs: 1
)";

using Change = std::function<void(StageSpec*)>;

void Tie(StageSpec* spec) {
  spec->model.blocks.back().layers.back().tied_to = "in.fc";
  spec->tied = FindTiedWeight(spec->model);
  if (!spec->has_tied_cut()) return;
  spec->activations.emplace_back();
  spec->gradients.emplace_back();
}

struct TiedStages : Stages {
  explicit TiedStages(
      const std::vector<std::string>& overrides, const BackendOf& backend_of = CpuBackend,
      const Change& change = [](StageSpec*) {})
      : Stages(kExperiment, overrides, backend_of, [&](StageSpec* spec) {
          Tie(spec);
          change(spec);
        }) {}

  const Parameter& parameter(const std::string& name) {
    for (size_t i = 0;; ++i) {
      for (const Parameter* parameter : stage(i).parameters()) {
        if (parameter->spec.name == name) return *parameter;
      }
    }
  }
  std::vector<float> value(const std::string& name) {
    const auto floats = parameter(name).value.floats();
    return {floats.begin(), floats.end()};
  }
};

struct TiedCodec {
  const char* name;
  const char* embedding;  // gradients as they travel with activations, and those of the head
  const char* head;
};

// Returns a change that sets the tied cut's two directions, as an experiment spells them.
Change WithCodec(const TiedCodec& codec) {
  const auto from = [](const char* yaml, bool gradient) {
    const Experiment experiment = *ParseExperiment(
        kExperiment, "test",
        {absl::StrCat("compression.", gradient ? "gradients" : "activations", "=", yaml)});
    return *DirectionFrom(DirectionOf(experiment, "in", gradient), gradient);
  };
  return
      [embedding = from(codec.embedding, false), head = from(codec.head, true)](StageSpec* spec) {
        spec->activations.back() = embedding;
        spec->gradients.back() = head;
      };
}

class TiedTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::string schedule() const { return absl::StrCat("pipeline.schedule=", GetParam()); }
};

TEST_P(TiedTest, StagesTrainLikeOneAndLikeTheUncutModel) {
  TiedStages one({schedule(), "pipeline.stages=1"});
  const std::vector<double> losses = one.Train();
  ASSERT_THAT(losses, SizeIs(3));
  for (const char* stages : {"pipeline.stages=2", "pipeline.stages=4", "pipeline.cuts=[]"}) {
    SCOPED_TRACE(stages);
    std::vector<std::string> overrides = {schedule(), stages};
    TiedStages other(overrides);
    EXPECT_THAT(other.Train(), ElementsAreArray(losses));
    EXPECT_THAT(other.Values(), ElementsAreArray(one.Values()));
    EXPECT_EQ(other.Evaluate(true).loss(), one.Evaluate(true).loss());
  }
}

TEST_P(TiedTest, BothCopiesStartAndStayEqualWhateverTheCodec) {
  const TiedCodec codecs[] = {
      {"none", "{codec: none}", "{codec: none}"},
      {"one direction", "{codec: none}", "{codec: uniform, bits: 4}"},
      {"topk and fp16", "{codec: topk, ratio: 0.1}", "{codec: fp16}"},
      {"feedback", "{codec: topk, ratio: 0.1, feedback: {kind: ef21, digest_every: 1}}",
       "{codec: uniform, bits: 4, feedback: ef}"},
      {"low rank", "{codec: low_rank, rank: 2}", "{codec: low_rank, rank: 2, feedback: ef}"},
  };
  std::vector<float> uncompressed;
  for (const TiedCodec& codec : codecs) {
    SCOPED_TRACE(codec.name);
    const Change with = WithCodec(codec);
    TiedStages one({schedule(), "pipeline.stages=1"}, CpuBackend, with);
    TiedStages four({schedule(), "pipeline.stages=4"}, CpuBackend, with);
    const std::vector<float> before = one.value("in.fc.weight");
    EXPECT_EQ(one.value("head.fc.weight"), before);
    EXPECT_THAT(four.Train(), ElementsAreArray(one.Train()));
    const std::vector<float> after = one.value("in.fc.weight");
    EXPECT_NE(after, before);
    EXPECT_EQ(one.value("head.fc.weight"), after);
    EXPECT_EQ(four.value("in.fc.weight"), after);
    EXPECT_EQ(four.value("head.fc.weight"), after);
    if (uncompressed.empty()) {
      uncompressed = after;
    } else {
      EXPECT_NE(after, uncompressed);
    }
  }
}

TEST_P(TiedTest, BothCopiesTakeTheSumOfBothGradients) {
  TiedStages tied({schedule(), "pipeline.stages=4"});
  // Without the tie each weight has its own gradient; equal values make equal activations and so
  // equal gradients.
  Stages apart(kExperiment, {schedule(), "pipeline.stages=1"});
  LocalStage& stage = apart.stage(0);
  const auto find = [&](const char* name) {
    const Parameter* found = nullptr;
    for (const Parameter* parameter : stage.parameters()) {
      if (parameter->spec.name == name) found = parameter;
    }
    return found;
  };
  const Parameter *embedding = find("in.fc.weight"), *head = find("head.fc.weight");
  std::copy(embedding->value.floats().begin(), embedding->value.floats().end(),
            head->value.floats().begin());
  std::string file;
  ASSERT_TRUE(WriteParameters(stage.parameters(), 1 << 20, [&](std::string_view piece) {
                file += piece;
                return absl::OkStatus();
              }).ok());
  bool is_read = false;
  const auto whole = [&](std::string_view* piece) {
    *piece = file;
    return !std::exchange(is_read, true);
  };
  ASSERT_TRUE(stage.ImportParameters(/*kept=*/{}, whole).ok());
  GradientsRequest request;
  request.set_epoch(1);
  request.set_batch(1);
  request.set_samples(apart.train_size());
  ASSERT_TRUE(apart.executor(0).Gradients(request).ok());
  for (const absl::Status& status :
       tied.AtEveryStage([&](size_t i) { return tied.executor(i).Gradients(request).status(); })) {
    ASSERT_TRUE(status.ok()) << status;
  }
  const auto of_first = tied.parameter("in.fc.weight").gradient.floats();
  const auto of_last = tied.parameter("head.fc.weight").gradient.floats();
  for (size_t i = 0; i < of_first.size(); ++i) {
    ASSERT_EQ(of_first[i], embedding->gradient.floats()[i] + head->gradient.floats()[i]) << i;
    ASSERT_EQ(of_last[i], of_first[i]) << i;
  }
}

TEST_P(TiedTest, ADeviceThatIsNotTheHostDoesTheSame) {
  const Change with =
      WithCodec({"", "{codec: topk, ratio: 0.1}", "{codec: uniform, bits: 4, feedback: ef}"});
  TiedStages host({schedule()}, CpuBackend, with);
  TiedStages late(
      {schedule()}, [](int) { return NewLateBackend(); }, with);
  EXPECT_THAT(late.Train(), ElementsAreArray(host.Train()));
  EXPECT_THAT(late.Values(), ElementsAreArray(host.Values()));
}

// Plain SGD with learning rate 1 subtracts exactly the gradient, scaled by clipping.
TEST_P(TiedTest, TheWholeGradientIsClippedAndTheTiedWeightCountsOnce) {
  const std::vector<std::string> sgd = {schedule(), "optimizer={name: sgd, lr: 1}",
                                        "data.limit=20"};
  const auto with_clip = [&](const char* more) {
    std::vector<std::string> all = sgd;
    all.push_back("optimizer.clip_norm=0.125");
    all.push_back(more);
    return all;
  };
  TiedStages plain(sgd), one(with_clip("pipeline.stages=1")), four(with_clip("pipeline.stages=4"));
  const std::vector<float> before = plain.Values();
  GradientsRequest request;
  request.set_epoch(1);
  request.set_batch(1);
  request.set_samples(plain.train_size());
  for (const absl::Status& status : plain.AtEveryStage(
           [&](size_t i) { return plain.executor(i).Gradients(request).status(); })) {
    ASSERT_TRUE(status.ok()) << status;
  }
  double squares = 0;
  std::map<std::string, absl::Span<const float>> by_name;  // as Values are
  for (size_t i = 0; i < 4; ++i) {
    for (const Parameter* parameter : plain.stage(i).parameters()) {
      const auto floats = parameter->gradient.floats();
      by_name[parameter->spec.name] = floats;
      if (!parameter->spec.tied_to.empty()) continue;
      for (float g : floats) squares += double{g} * g;
    }
  }
  ASSERT_GT(squares, 0.125 * 0.125);
  std::vector<float> gradients;
  for (const auto& [name, floats] : by_name) {
    gradients.insert(gradients.end(), floats.begin(), floats.end());
  }
  one.Train();
  four.Train();
  EXPECT_THAT(four.Values(), ElementsAreArray(one.Values()));
  const double scale = ClipScale(squares, 0.125);
  const std::vector<float> after = four.Values();
  for (size_t i = 0; i < after.size(); ++i) {
    ASSERT_NEAR(after[i], before[i] - scale * gradients[i], 1e-6) << i;
  }
}

TEST_P(TiedTest, WhatCrossesIsCountedAlikeInsideAProcess) {
  TiedStages one({schedule(), "pipeline.stages=1"}), four({schedule(), "pipeline.stages=4"});
  one.Train();
  four.Train();
  constexpr uint64_t kSteps = 3, kWeightBytes = 64 * 64 * 4;
  for (const char* cut : {"in", "b", "c", "tied"}) {
    for (Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      SCOPED_TRACE(absl::StrCat(cut, " ", direction));
      const BoundaryStatistics inside = one.sender(cut, direction).statistics();
      const BoundaryStatistics outside = four.sender(cut, direction).statistics();
      const bool is_tied = cut == std::string("tied");
      // Three microbatches and a sum of squares a step, or the weight's gradient.
      EXPECT_EQ(outside.train.messages, kSteps * (is_tied ? 1 : 4));
      EXPECT_EQ(inside.train.messages, outside.train.messages);
      EXPECT_EQ(inside.train.wire_bytes, outside.train.wire_bytes);
      EXPECT_EQ(inside.train.raw_bytes, outside.train.raw_bytes);
      if (!is_tied) continue;
      EXPECT_EQ(outside.train.raw_bytes, kSteps * kWeightBytes);
    }
  }
}

TEST_P(TiedTest, AParameterWhoseGradientIsNoNumberIsNamed) {
  TiedStages stages({schedule(), "pipeline.stages=4", "pipeline.deadline_seconds=60"});
  const Parameter* broken = &stages.parameter("b.fc.bias");
  broken->gradient.floats()[0] = std::nanf("");
  const auto statuses = stages.TryTrain(1);
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(statuses[1].message()),
              AllOf(HasSubstr("stage 1: at step 1 of epoch 1"), HasSubstr("b.fc.bias")));
  for (const absl::Status& status : statuses) EXPECT_FALSE(status.ok());  // nobody waits for ever
}

INSTANTIATE_TEST_SUITE_P(Schedules, TiedTest, ::testing::ValuesIn(PlainSchedulesForTests()));

// A stage waits, after its backward passes, for one that has ended or is silent.
TEST(TiedWaitTest, ASilentStageIsNamedAtTheDeadline) {
  TiedStages stages({"pipeline.stages=2", "pipeline.deadline_seconds=0.2"});
  Work work;
  work.phase = PHASE_TRAIN;
  work.epoch = work.step = 1;
  work.batch_size = 20;
  const absl::Status tied = stages.stage(0).SumTiedGradients(work);
  EXPECT_EQ(tied.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(tied.message()),
              AllOf(HasSubstr("cut tied, from the last stage"), HasSubstr("step 1")));
  const absl::Status norm = stages.stage(0).Update(work, 0.1);
  EXPECT_EQ(norm.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(norm.message()),
              AllOf(HasSubstr("cut"), HasSubstr("from downstream"),
                    HasSubstr("sum of squares of gradients of all stages"), HasSubstr("step 1")));
}

TEST(TiedWaitTest, AStageThatEndsEndsTheWaitsOfAllOthers) {
  for (size_t ends : {size_t{0}, size_t{1}, size_t{3}}) {
    SCOPED_TRACE(ends);
    TiedStages stages({"pipeline.stages=4", "pipeline.deadline_seconds=300"});
    Work work;
    work.phase = PHASE_TRAIN;
    work.epoch = work.step = 1;
    work.batch_size = 20;
    const auto statuses = stages.AtEveryStage([&](size_t i) -> absl::Status {
      LocalStage& stage = stages.stage(i);
      if (i == ends) {
        stage.CloseLinks(absl::InternalError("it broke"));
        return absl::InternalError("it broke");
      }
      absl::Status status = stage.SumTiedGradients(work);
      if (status.ok()) status = stage.Update(work, 0.1);
      if (!status.ok()) stage.CloseLinks(status);
      return status;
    });
    for (size_t i = 0; i < statuses.size(); ++i) {
      EXPECT_FALSE(statuses[i].ok()) << i;
      if (i == ends) continue;
      EXPECT_THAT(std::string(statuses[i].message()), HasSubstr("cut ")) << i;
    }
  }
}

TEST(TiedWaitTest, NothingRunsBeforeBothCopiesAreConnected) {
  const Experiment experiment = *ParseExperiment(kExperiment, "test", {});
  StageSpec first = *StageSpecFrom(experiment, 0), second = *StageSpecFrom(experiment, 1);
  Tie(&first);
  Tie(&second);
  const auto upstream = *LocalStage::Build(first, CpuBackend(0));
  const auto downstream = *LocalStage::Build(second, CpuBackend(1));
  ASSERT_TRUE(Join(upstream.get(), downstream.get()).ok());
  EXPECT_EQ(
      upstream->CheckConnected(),
      absl::FailedPreconditionError("stage 0 is not connected to stage 3 for the tied weight"));
}

}  // namespace
}  // namespace thinwire
