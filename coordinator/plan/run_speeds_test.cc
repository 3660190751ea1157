#include "coordinator/plan/run_speeds.h"

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/files/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kExperiment[] = R"(
name: ran
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 20}
pipeline: {cuts: [layer1, layer2], stages: 2, microbatches: 4}
compression: {gradients: {codec: uniform, bits: 4}}
optimizer: {lr: 0.1}
epochs: 2
)";

Experiment With(const std::vector<std::string>& overrides) {
  return *ParseExperiment(kExperiment, "test", overrides);
}

// Two stages trained 200 samples in 10 steps.
Summary SomeSummary() {
  Summary summary;
  summary.set_device("cpu");
  summary.mutable_provenance()->set_cpu_model("some processor");
  for (const double seconds : {2.0, 8.0}) {
    ComputeRecord* stage = summary.add_compute();
    stage->set_steps(10);
    stage->set_samples(200);
    stage->set_forward_seconds(seconds);
    stage->set_backward_seconds(3 * seconds);
    stage->set_optimizer_seconds(0.5);
  }
  BoundaryRecord* boundary = summary.add_boundaries();
  boundary->set_name("layer1");
  DirectionRecord* gradients = boundary->mutable_gradients();
  const Experiment ran = With({});
  gradients->set_parameters(CodecFrom(DirectionOf(ran, "layer1", true))->ToString());
  gradients->set_feedback("none");
  gradients->set_raw_bytes(1000);
  gradients->set_payload_bytes(130);
  gradients->set_encode_seconds(4);
  gradients->set_decode_seconds(2);
  return summary;
}

TEST(SpeedsOfRunTest, AStagesSecondsAreThoseOfItsBlocksByTheirFlops) {
  const auto speeds = SpeedsOf(SomeSummary(), With({}), With({"pipeline.stages=3"}), "runs/a");
  ASSERT_TRUE(speeds.ok()) << speeds.status();
  const Partition partition = *PartitionFrom(With({}));
  const int first_of_second =
      SegmentBlocks(partition.model, partition.cuts, partition.placement.At(1, 0).first).first;
  const auto& blocks = partition.model.blocks;
  ASSERT_EQ(speeds->blocks.size(), blocks.size());
  double forward[2] = {0, 0}, backward[2] = {0, 0}, update[2] = {0, 0};
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    const int stage = i < first_of_second ? 0 : 1;
    forward[stage] += speeds->blocks[i].forward;
    backward[stage] += speeds->blocks[i].backward;
    update[stage] += speeds->blocks[i].update;
  }
  EXPECT_DOUBLE_EQ(forward[0], 2.0 / 200);
  EXPECT_DOUBLE_EQ(forward[1], 8.0 / 200);
  EXPECT_DOUBLE_EQ(backward[1], 24.0 / 200);
  EXPECT_DOUBLE_EQ(update[0], 0.05);
  EXPECT_NEAR(speeds->blocks[0].forward / speeds->blocks[1].forward,
              ForwardFlops(blocks[0]) / ForwardFlops(blocks[1]), 1e-9);
  EXPECT_THAT(speeds->compute_source, HasSubstr("runs/a"));
  EXPECT_EQ(speeds->samples_of_pass, 200.0 / (10 * 4));
  EXPECT_EQ(speeds->machine, "cpu, some processor");
}

TEST(SpeedsOfRunTest, WhatARunComputedAgainIsNoPartOfItsBackwardPasses) {
  const auto plain = SpeedsOf(SomeSummary(), With({}), With({}), "a");
  const auto again = SpeedsOf(SomeSummary(), With({"pipeline.recompute=blocks"}), With({}), "a");
  ASSERT_TRUE(plain.ok() && again.ok());
  const size_t last_block = plain->blocks.size() - 2;  // before the head, which keeps little
  EXPECT_LT(again->blocks[last_block].backward, 0.75 * plain->blocks[last_block].backward);
  EXPECT_GT(again->blocks[last_block].backward, 0.6 * plain->blocks[last_block].backward);
}

TEST(SpeedsOfRunTest, CodingsAreThoseThatTheRunHad) {
  const auto speeds = SpeedsOf(SomeSummary(), With({}), With({}), "a");
  ASSERT_TRUE(speeds.ok()) << speeds.status();
  ASSERT_EQ(speeds->codings.size(), 1u);
  const auto& [coding, speed] = *speeds->codings.begin();
  EXPECT_EQ(coding.cut, "layer1");
  EXPECT_TRUE(coding.gradient);
  EXPECT_DOUBLE_EQ(speed.encode_seconds_per_byte, 4e-3);
  EXPECT_DOUBLE_EQ(speed.decode_seconds_per_byte, 2e-3);
  EXPECT_DOUBLE_EQ(speed.payload_per_byte, 0.13);
}

TEST(SpeedsOfRunTest, AnotherModelIsRefusedAndBothAreNamed) {
  const auto wide = SpeedsOf(SomeSummary(), With({}), With({"model.width=16"}), "runs/a");
  EXPECT_THAT(std::string(wide.status().message()),
              ::testing::MatchesRegex("runs/a: trained resnet8 of [0-9]+ parameters for inputs "
                                      ".*, want resnet8 of [0-9]+ parameters .*"));
}

TEST(SpeedsOfRunTest, ARunThatMeasuredNothingIsRefused) {
  EXPECT_THAT(std::string(SpeedsOf({}, With({}), With({}), "runs/a").status().message()),
              StartsWith("runs/a: its summary tells what 0 stages computed, want 2"));
  Summary none = SomeSummary();
  none.mutable_compute(1)->set_samples(0);
  EXPECT_THAT(std::string(SpeedsOf(none, With({}), With({}), "runs/a").status().message()),
              HasSubstr("want more than 0"));
}

class FolderTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(dir_);
    ASSERT_TRUE(ReplaceFile(dir_ + "/" + name, text).ok());
  }
  std::string Error() { return std::string(SpeedsOfRun(dir_, With({})).status().message()); }

  const std::string dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FolderTest, OfARunIsRead) {
  Write("summary.json", JsonText(ToJson(SomeSummary()), 2));
  Write("experiment.yaml", ToYaml(With({})));
  const auto speeds = SpeedsOfRun(dir_, With({}));
  ASSERT_TRUE(speeds.ok()) << speeds.status();
  EXPECT_EQ(speeds->codings.size(), 1u);
}

TEST_F(FolderTest, ThatIsNoneIsNamed) {
  EXPECT_THAT(Error(), StartsWith(dir_ + ": no run is recorded here: "));
}

TEST_F(FolderTest, WithASummaryThatIsNoneIsNamed) {
  for (const char* text :
       {"", "{", "[1]", "{\"compute\": 3}", "{\"compute\": [{\"steps\": -1}]}"}) {
    Write("summary.json", text);
    EXPECT_THAT(Error(), HasSubstr("summary.json: is no Summary")) << text;
  }
}

}  // namespace
}  // namespace thinwire
