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

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
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

// Two stages trained 200 samples in 10 steps. The first has one segment, the second two.
Summary SomeSummary() {
  Summary summary;
  summary.set_device("cpu");
  summary.mutable_provenance()->set_cpu_model("some processor");
  uint32_t segment = 0;
  for (const std::vector<double>& forward_seconds : {std::vector<double>{2}, {6, 8}}) {
    ComputeRecord* stage = summary.add_compute();
    stage->set_steps(10);
    stage->set_samples(200);
    for (const double seconds : forward_seconds) {
      SegmentRecord* record = stage->add_segments();
      record->set_segment(segment++);
      record->set_forward_seconds(seconds);
      record->set_backward_seconds(3 * seconds);
      record->set_optimizer_seconds(0.5);
    }
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

TEST(SpeedsOfRunTest, WhatPartsAddedUpTellsNothingOfCodecs) {
  Summary summary = SomeSummary();
  *summary.add_boundaries() = summary.boundaries(0);
  summary.mutable_boundaries(1)->set_name("sums");
  const auto speeds = SpeedsOf(summary, With({}), With({}), "runs/a");
  ASSERT_TRUE(speeds.ok()) << speeds.status();
  ASSERT_EQ(speeds->codings.size(), 1u);
  EXPECT_EQ(speeds->codings.begin()->first.cut, "layer1");
}

TEST(SpeedsOfRunTest, ASegmentsSecondsAreThoseOfItsBlocksByTheirFlops) {
  const auto speeds = SpeedsOf(SomeSummary(), With({}), With({"pipeline.stages=3"}), "runs/a");
  ASSERT_TRUE(speeds.ok()) << speeds.status();
  const Partition partition = *PartitionFrom(With({}));
  const auto& blocks = partition.model.blocks;
  ASSERT_EQ(speeds->blocks.size(), blocks.size());
  double forward[3] = {0, 0, 0}, backward[3] = {0, 0, 0}, update[3] = {0, 0, 0};
  for (int segment = 0; segment < 3; ++segment) {
    const BlockRange range = SegmentBlocks(partition.model, partition.cuts, segment);
    for (int i = range.first; i < range.last; ++i) {
      forward[segment] += speeds->blocks[i].forward;
      backward[segment] += speeds->blocks[i].backward;
      update[segment] += speeds->blocks[i].update;
    }
  }
  EXPECT_THAT(forward, ElementsAre(DoubleEq(2.0 / 200), DoubleEq(6.0 / 200), DoubleEq(8.0 / 200)));
  EXPECT_DOUBLE_EQ(backward[2], 24.0 / 200);
  EXPECT_THAT(update, Each(DoubleEq(0.05)));
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
  // The last one before the head, which keeps little.
  const size_t last_block = plain->blocks.size() - 2;
  EXPECT_LT(again->blocks[last_block].backward, 0.75 * plain->blocks[last_block].backward);
  EXPECT_GT(again->blocks[last_block].backward, 0.6 * plain->blocks[last_block].backward);
}

TEST(SpeedsOfRunTest, BackwardPassesAreThoseOfTheBlocksThatThePlanTrains) {
  const Experiment all = With({}), some = With({"freeze=[stem, layer1]"});
  const auto plain = SpeedsOf(SomeSummary(), all, all, "a");
  const auto fewer = SpeedsOf(SomeSummary(), all, some, "a");
  const auto more = SpeedsOf(SomeSummary(), some, all, "a");
  ASSERT_TRUE(plain.ok() && fewer.ok() && more.ok());
  for (const size_t frozen : {0, 1}) {
    EXPECT_EQ(fewer->blocks[frozen].backward, 0);
    EXPECT_DOUBLE_EQ(more->blocks[frozen].backward, 2 * more->blocks[frozen].forward);
  }
  EXPECT_GT(plain->blocks[2].backward, 0);
  EXPECT_EQ(fewer->blocks[2].backward, plain->blocks[2].backward);
  EXPECT_EQ(more->blocks[2].backward, plain->blocks[2].backward);
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
              StartsWith("runs/a: its summary has 0 s of compute for 0 steps of segment 0 of 3"));
  Summary none = SomeSummary();
  none.mutable_compute(1)->set_samples(0);
  EXPECT_THAT(std::string(SpeedsOf(none, With({}), With({}), "runs/a").status().message()),
              HasSubstr("segment 1 of 3, want more than 0"));
  Summary older = SomeSummary();
  older.mutable_compute(1)->mutable_segments()->RemoveLast();
  EXPECT_THAT(std::string(SpeedsOf(older, With({}), With({}), "runs/a").status().message()),
              HasSubstr("segment 2 of 3, want more than 0: a run of this build"));
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
