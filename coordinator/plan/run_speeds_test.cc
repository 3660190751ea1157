#include "coordinator/plan/run_speeds.h"

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
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

constexpr char kOfParts[] = R"(
model: {name: gpt2, layers: 4, heads: 4, width: 64}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [h.1], stages: 2, microbatches: 2}
tensor: {parts: 4}
compression: {sums: {activations: {codec: uniform, bits: 8}, gradients: {codec: fp16}, from_layer: half}}
optimizer: {lr: 0.01}
epochs: 2
)";

// Returns the summary of a run of four parts on so many machines for each stage. Half of the sums
// are exact. A byte of the others took 1 ns to encode, 2 ns to decode, and a quarter of it crossed.
Summary SummaryOfParts(const Experiment& ran, int machines) {
  constexpr double kBytes = 1e6;  // of all partial sums of one direction
  Summary summary;
  for (int stage = 0; stage < 2; ++stage) {
    ComputeRecord* const compute = summary.add_compute();
    compute->set_steps(10);
    compute->set_samples(60);
    SegmentRecord* const segment = compute->add_segments();
    segment->set_segment(static_cast<uint32_t>(stage));
    segment->set_forward_seconds(1);
    segment->set_backward_seconds(2);
    for (int i = 0; i < machines; ++i) summary.mutable_provenance()->add_stages();
  }
  BoundaryRecord* const sums = summary.add_boundaries();
  sums->set_name("sums");
  const SumsSpec spec = *SumsFrom(ran, PartitionFrom(ran)->model);
  for (const bool gradient : {false, true}) {
    DirectionRecord* const record =
        gradient ? sums->mutable_gradients() : sums->mutable_activations();
    record->set_parameters((gradient ? spec.gradients : spec.activations).codec.ToString());
    record->set_feedback("none");
    record->set_raw_bytes(static_cast<uint64_t>(3 * kBytes));
    record->set_payload_bytes(static_cast<uint64_t>(3 * kBytes * (0.5 + 0.5 / 4)));
    record->set_encode_seconds(1e-9 * kBytes / 2);
    record->set_decode_seconds(2e-9 * kBytes / 2 * machines);
  }
  return summary;
}

TEST(SpeedsOfRunTest, SecondsOfSumsAreOfTheBytesThatMachinesEncodedAndDecoded) {
  const Experiment ran = *ParseExperiment(kOfParts, "test", {});
  for (const int machines : {1, 2, 4}) {
    const auto speeds = SpeedsOf(SummaryOfParts(ran, machines), ran, ran, "runs/a");
    ASSERT_TRUE(speeds.ok()) << speeds.status();
    ASSERT_EQ(speeds->codings.size(), 2u) << machines;
    for (const auto& [coding, speed] : speeds->codings) {
      EXPECT_EQ(coding.cut, "sums");
      EXPECT_NEAR(speed.encode_seconds_per_byte, 1e-9, 1e-12) << machines;
      EXPECT_NEAR(speed.decode_seconds_per_byte, 2e-9, 1e-12) << machines;
      EXPECT_NEAR(speed.payload_per_byte, 0.25, 1e-6) << machines;
    }
  }
  const Experiment sliced = *ParseExperiment(kOfParts, "test", {"tensor.sequence=true"});
  EXPECT_TRUE(SpeedsOf(SummaryOfParts(sliced, 2), sliced, sliced, "a")->codings.empty());
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
