// Checks that after a loss in the middle of a step the others can go on from one step, with the
// state that they would have had there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/settings_testing.h"
#include "stage_server/stage/stage_state.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr int kSteps = 10;

constexpr char kImages[] = R"(
name: members
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 10, limit: 97, test_limit: 20}
pipeline: {cuts: [stem, layer2], stages: 2, microbatches: 1, threads: 1}
compression: {activations: {codec: uniform, bits: 8}, gradients: {codec: uniform, bits: 8}}
replicas: {count: 4, contributions: {codec: ecsq, rate: 3}, average: {codec: uniform, bits: 8}}
membership: {open: true}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 1
)";

constexpr char kText[] = R"(
name: members
model: {name: gpt2, width: 16, layers: 2, heads: 2, dropout: 0.1}
data: {name: shakespeare, batch_size: 6, context: 16, windows: 60, test_limit: 2}
pipeline: {cuts: [h.0], stages: 2, microbatches: 1, threads: 1}
replicas: {count: 3}
membership: {open: true}
optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, clip_norm: 0.5}
epochs: 1
)";

struct Members : Stages {
  Members(const char* experiment, int carriers, const std::vector<std::string>& overrides = {})
      : Stages(
            experiment, overrides, CpuBackend, [](StageSpec*) {}, carriers) {}
};

class MembershipTest : public ::testing::TestWithParam<const char*> {};

TEST_P(MembershipTest, StagesThatAgreeOnUpdatesTrainAsOthers) {
  Members closed(GetParam(), /*carriers=*/1, {"membership.open=false"});
  const std::vector<double> losses = closed.Train();
  for (const int carriers : Settings({1, 2})) {
    Members open(GetParam(), carriers);
    EXPECT_THAT(open.Train(), ElementsAreArray(losses)) << carriers;
    EXPECT_THAT(open.Values(), ElementsAreArray(closed.Values())) << carriers;
  }
}

TEST_P(MembershipTest, ADealOfReplicasChangesNoNumber) {
  Members equal(GetParam(), /*carriers=*/2);
  const std::vector<double> losses = equal.Train();
  const int replicas = equal.stage(0).spec().replicas.count;
  for (const Deal& deal : {Deal{1, replicas - 1}, Deal{replicas - 1, 1}}) {
    SCOPED_TRACE(deal[0]);
    Stages dealt(
        GetParam(), {}, CpuBackend, [&deal](StageSpec* spec) { spec->grid.deal = deal; },
        /*carriers=*/2);
    EXPECT_THAT(dealt.Train(), ElementsAreArray(losses));
    EXPECT_THAT(dealt.Values(), ElementsAreArray(equal.Values()));
  }
}

// Two pipelines train while a third one follows, which begins when they have ended.
TEST_P(MembershipTest, APipelineThatFollowsMakesTheSameUpdatesAndNobodyWaitsForIt) {
  Members equal(GetParam(), /*carriers=*/2);
  const std::vector<double> losses = equal.Train();
  const int replicas = equal.stage(0).spec().replicas.count;
  Stages followed(
      GetParam(), {}, CpuBackend,
      [replicas](StageSpec* spec) {
        spec->grid.deal = {1, replicas - 1, 0};
      },
      /*carriers=*/3);
  constexpr size_t kFollows = 4;  // the first stage that does
  std::atomic<size_t> others = kFollows;
  absl::Notification are_done;
  std::vector<double> of_others, of_follower;
  TrainRequest request;
  request.set_epoch(1);
  request.set_samples(equal.train_size());
  const auto statuses = followed.AtEveryStage([&](size_t i) {
    if (i >= kFollows) are_done.WaitForNotification();
    const absl::Status status = followed.executor(i).Train(request, [&](const StepReport& step) {
      if (i == 1) of_others.push_back(step.loss());
      if (i == kFollows + 1) of_follower.push_back(step.loss());
    });
    if (i < kFollows && --others == 0) are_done.Notify();
    return status;
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(of_others, ElementsAreArray(losses));
  EXPECT_THAT(of_follower, ElementsAreArray(losses));
  EXPECT_THAT(followed.Values(), ElementsAreArray(equal.Values()));
}

// Returns what is copied of a stage for the one that takes its place.
CopiedState Kept() {
  CopiedState kept;
  kept.shared = true;
  kept.outlives = true;
  return kept;
}

// Returns the shared state of a stage.
std::vector<std::string> StateOf(LocalStage* stage) {
  std::vector<std::string> files;
  const auto copied = CopyState(stage, Kept(), kNoLimit);
  EXPECT_TRUE(copied.ok()) << copied.status();
  for (const StateFile& file : *copied) {
    std::string& bytes = files.emplace_back();
    const absl::Status written =
        WriteFile(file, /*piece_bytes=*/1 << 16, [&bytes](std::string_view piece) {
          bytes += piece;
          return absl::OkStatus();
        });
    EXPECT_TRUE(written.ok()) << written;
  }
  return files;
}

// Trains and stops server `lost` some microseconds after its step `after`. Returns the last step
// of any other server, which all others reach.
uint64_t LoseOne(size_t lost, uint64_t after, int microseconds, Members* members) {
  absl::Notification is_due;
  std::thread killer([&] {
    EXPECT_TRUE(is_due.WaitForNotificationWithTimeout(absl::Seconds(60)));
    absl::SleepFor(absl::Microseconds(microseconds));
    members->executor(lost).Stop(absl::UnavailableError("killed"));
  });
  if (after == 0) is_due.Notify();
  members->TryTrain(1, [&](size_t server, const StepReport& report) {
    if (server == lost && report.step() == after) is_due.Notify();
  });
  killer.join();
  StageStanding common;
  for (size_t i = 0; i < members->size(); ++i) {
    const auto& standing = members->executor(i).standing();
    if (i != lost && standing && standing->step() > common.step()) common = *standing;
  }
  for (size_t i = 0; i < members->size(); ++i) {
    if (i == lost || !members->executor(i).standing()) continue;
    EXPECT_TRUE(members->executor(i).Reach(common).ok()) << members->executor(i).Reach(common);
  }
  return common.step();
}

TEST_P(MembershipTest, AfterALossAllOthersReachOneStep) {
  Members whole(GetParam(), /*carriers=*/1);
  std::vector<std::vector<std::vector<std::string>>> states;  // by step, by stage
  for (uint64_t step = 0; step <= kSteps; ++step) {
    if (step > 0) whole.TrainSteps(1, step, step);
    states.push_back({StateOf(&whole.stage(0)), StateOf(&whole.stage(1))});
  }
  std::mt19937 random(1);
  int in_the_middle = 0;
  for (const size_t lost : {0, 1, 2, 3, 3, 2, 1, 0}) {
    Members members(GetParam(), /*carriers=*/2);
    const uint64_t after = std::uniform_int_distribution<uint64_t>(0, kSteps - 2)(random);
    const int microseconds = std::uniform_int_distribution<int>(0, 5000)(random);
    const uint64_t step = LoseOne(lost, after, microseconds, &members);
    SCOPED_TRACE(absl::StrCat("lost ", lost, " after step ", step));
    if (step > 0 && step < kSteps) ++in_the_middle;
    for (size_t i = 0; i < members.size(); ++i) {
      if (i == lost || !members.executor(i).standing()) continue;
      EXPECT_EQ(StateOf(&members.stage(i)), states[step][i % 2]) << i;
      StageStanding of_other;
      of_other.set_stage(1 - i % 2);
      of_other.set_step(step);
      members.executor(i).StandAt(of_other);
      EXPECT_EQ(members.executor(i).standing()->stage(), i % 2) << "as another stage was told";
    }
  }
  EXPECT_GE(in_the_middle, 1) << "a step takes a small part of the delays";
}

// Stages of the text model have a copy each of one weight.
TEST_P(MembershipTest, KeptStateGoesOnUnderAnotherDeal) {
  Members equal(GetParam(), /*carriers=*/2);
  const std::vector<double> losses = equal.Train();
  const int replicas = equal.stage(0).spec().replicas.count;
  constexpr uint64_t kBefore = 4;
  Members past(GetParam(), /*carriers=*/2);
  past.TrainSteps(1, 1, kBefore);
  Stages next(
      GetParam(), {}, CpuBackend,
      [replicas](StageSpec* spec) {
        spec->grid.deal = {1, replicas - 1};
      },
      /*carriers=*/2);
  for (size_t i = 0; i < past.size(); ++i) {
    const auto kept = CopyState(&past.stage(i), Kept(), kNoLimit);
    ASSERT_TRUE(kept.ok()) << kept.status();
    for (const StateFile& file : *kept) {
      const absl::Status restored = RestoreState(&next.stage(i), file, kBefore, kNoLimit);
      ASSERT_TRUE(restored.ok()) << restored;
    }
  }
  EXPECT_THAT(next.TrainSteps(1, kBefore + 1, kSteps),
              ElementsAreArray(losses.begin() + kBefore, losses.end()));
  EXPECT_THAT(next.Values(), ElementsAreArray(equal.Values()));
}

// The copy is in few bits, too, and has the same codes when another stage has taken it.
TEST(KeptStateTest, AKeptBaseInFewBitsOutlivesItsStage) {
  const std::vector<std::string> bases = {"fp32", "bf16", "int8", "nf4"};
  for (size_t i = 0; i < 2 * bases.size(); ++i) {
    const std::string& base = bases[i / 2];
    const size_t stage = i % 2;
    SCOPED_TRACE(absl::StrCat(base, " of stage ", stage));
    const std::vector<std::string> held = {"model.width=64", "lora={rank: 2}",
                                           absl::StrCat("base.weights=", base)};
    std::vector<StateFile> kept;
    std::vector<std::string> before;
    {
      Members past(kText, /*carriers=*/1, held);
      past.TrainSteps(1, 1, 2);
      before = StateOf(&past.stage(stage));
      auto copied = CopyState(&past.stage(stage), Kept(), kNoLimit);
      ASSERT_TRUE(copied.ok()) << copied.status();
      kept = *std::move(copied);
    }
    Members next(kText, /*carriers=*/1, held);
    EXPECT_NE(StateOf(&next.stage(stage)), before);
    for (const StateFile& file : kept) {
      const absl::Status restored = RestoreState(&next.stage(stage), file, /*step=*/2, kNoLimit);
      ASSERT_TRUE(restored.ok()) << restored;
    }
    EXPECT_EQ(StateOf(&next.stage(stage)), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MembershipTest, ::testing::Values(kImages, kText),
                         [](const auto& info) { return info.index == 0 ? "Images" : "Text"; });

}  // namespace
}  // namespace thinwire
