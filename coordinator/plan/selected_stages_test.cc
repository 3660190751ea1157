#include "coordinator/plan/selected_stages.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/exact_segments.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// The last segment has most parameters.
constexpr char kExperiment[] = R"(
name: selected
model: {name: resnet8, width: 32}
data: {name: digits, batch_size: 16}
pipeline: {cuts: [stem, layer1, layer2], stages: 2, microbatches: 2}
replicas: {count: 2, contributions: {codec: uniform, bits: 4}, average: {codec: uniform, bits: 4}}
optimizer: {lr: 0.1}
epochs: 1
)";

std::optional<SelectedStages> Select(double mbit, const std::vector<std::string>& overrides = {},
                                     int carriers = 0) {
  const Experiment experiment = *ParseExperiment(kExperiment, "test", overrides);
  PlanAssumptions assumptions;
  assumptions.bits_per_second = {1e6 * mbit};
  assumptions.carriers = carriers;
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, /*gflops=*/10);
  speeds.others = *CodingAt(10);
  const auto selected = SelectStages(experiment, assumptions, speeds);
  EXPECT_TRUE(selected.ok()) << selected.status();
  return selected.ok() ? *selected : std::nullopt;
}

TEST(SelectedStagesTest, OnlySegmentsWhoseExchangeLengthensAStepAreCompressed) {
  const SelectedStages fast = *Select(1e6);
  EXPECT_THAT(fast.exact(), ElementsAre("stem", "layer1", "layer2", "head"));
  EXPECT_EQ(fast.step_seconds(), fast.exact_step_seconds());
  const SelectedStages slow = *Select(10);
  EXPECT_GE(slow.exact_size(), 1);
  EXPECT_LT(slow.exact_size(), 4);
  EXPECT_LE(slow.step_seconds(), (1 + kMostLonger) * slow.compressed_step_seconds());
  EXPECT_GT(slow.exact_step_seconds(), (1 + kMostLonger) * slow.compressed_step_seconds());
}

TEST(SelectedStagesTest, TheChoiceCanBePastedIntoTheFile) {
  const SelectedStages slow = *Select(10);
  for (const bool gathers : {false, true}) {
    const std::string text = FormatSelected(slow, gathers);
    const std::string entries = text.substr(text.find("  stages:"));
    std::string file = kExperiment;
    const std::string section = "replicas: {count: 2, ";
    const size_t begin = file.find(section), end = file.find('\n', begin);
    file.replace(begin, end - begin,
                 absl::StrCat("replicas:\n  count: 2\n  exchange: ", gathers ? "gather" : "reduce",
                              "\n", entries));
    const auto experiment = ParseExperiment(file, "test", {});
    ASSERT_TRUE(experiment.ok()) << experiment.status() << file;
    EXPECT_EQ(experiment->replicas().stages_size(), slow.exact_size());
    for (const std::string& name : slow.exact()) {
      EXPECT_TRUE(experiment->replicas().stages().contains(name)) << name;
    }
  }
}

TEST(SelectedStagesTest, EntriesThatAreThereAreLeftAside) {
  const SelectedStages slow = *Select(10);
  const SelectedStages again =
      *Select(10, {"replicas.stages={head: {contributions: {codec: fp16}}}"});
  EXPECT_EQ(again.SerializeAsString(), slow.SerializeAsString());
}

TEST(SelectedStagesTest, ThereIsNothingToChooseWhereNothingCrossesOrIsCompressed) {
  EXPECT_FALSE(Select(10, {}, /*carriers=*/1).has_value());
  EXPECT_FALSE(Select(10, {"replicas.count=1"}).has_value());
  EXPECT_FALSE(
      Select(10, {"replicas.contributions.codec=none", "replicas.average.codec=none"}).has_value());
}

TEST(SelectedStagesTest, TheTextSaysWhereNoSegmentMayBeExact) {
  SelectedStages none;
  none.set_compressed_step_seconds(0.01);
  none.set_exact_step_seconds(0.5);
  EXPECT_THAT(FormatSelected(none, /*gathers=*/false),
              StartsWith("\nReplicas: A step takes 10.00 ms with all segments compressed, and"));
}

}  // namespace
}  // namespace thinwire
