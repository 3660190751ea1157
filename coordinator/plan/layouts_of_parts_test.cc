// Layouts with tensor-parallel parts.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "coordinator/plan/layouts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kExperiment[] = R"(
name: laid_out
model: {name: gpt2, layers: 2, heads: 4, width: 64}
data: {name: shakespeare, context: 16, batch_size: 8, limit: 80}
pipeline: {microbatches: 2, stages: 2}
compression: {activations: {codec: uniform, bits: 4}}
optimizer: {name: adamw, lr: 0.01}
epochs: 2
)";

const std::vector<std::string> kDivided = {
    "tensor.parts=2",
    "compression.sums={activations: {codec: uniform, bits: 8}, from_layer: half}"};

Experiment With(const std::vector<std::string>& overrides = kDivided) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

LayoutOptions Four() {
  LayoutOptions options;
  options.machines = 4;
  options.memory_bytes = 1e12;
  return options;
}

// Returns the layouts at this link rate, of machines of 10 GFLOP/s.
std::vector<LayoutEstimate> Ranked(const Experiment& experiment, const LayoutOptions& options,
                                   double bits_per_second) {
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, /*gflops=*/10);
  speeds.others = *CodingAt(/*gigabytes_per_second=*/2);
  PlanAssumptions assumptions;
  assumptions.bits_per_second = {bits_per_second};
  const auto layouts = LayoutsFor(experiment, options);
  EXPECT_TRUE(layouts.ok()) << layouts.status();
  const auto ranked = RankedLayouts(layouts->all, options, assumptions, speeds);
  EXPECT_TRUE(ranked.ok()) << ranked.status();
  return *ranked;
}

// Returns the ranked layouts of the divided experiment on four machines, which several tests look
// at.
const std::vector<LayoutEstimate>& RankedOfFour(double bits_per_second) {
  static auto* const ranked = new std::map<double, std::vector<LayoutEstimate>>;
  std::vector<LayoutEstimate>& rows = (*ranked)[bits_per_second];
  if (rows.empty()) rows = Ranked(With(), Four(), bits_per_second);
  return rows;
}

std::set<std::string> ShapesOf(const std::vector<LayoutEstimate>& rows) {
  std::set<std::string> shapes;
  for (const LayoutEstimate& row : rows) {
    shapes.insert(absl::StrCat(row.replicas(), "x", row.stages(), "x", row.parts()));
  }
  return shapes;
}

TEST(LayoutsOfPartsTest, AreTriedWhereTheExperimentHasSomeOrTheyAreAskedFor) {
  EXPECT_THAT(ShapesOf(RankedOfFour(1e9)),
              ElementsAre("1x1x4", "1x2x2", "1x4x1", "2x1x2", "2x2x1", "4x1x1"));
  EXPECT_THAT(ShapesOf(Ranked(With({}), Four(), 1e9)), ElementsAre("1x4x1", "2x2x1", "4x1x1"));
  LayoutOptions options = Four();
  options.parts = {2};
  EXPECT_THAT(ShapesOf(Ranked(With({}), options, 1e9)), ElementsAre("1x2x2", "2x1x2"));
}

TEST(LayoutsOfPartsTest, EachIsAnExperimentFile) {
  int own = 0;
  for (const LayoutEstimate& row : RankedOfFour(1e9)) {
    const auto experiment = ParseExperiment(row.experiment(), "row", {});
    ASSERT_TRUE(experiment.ok()) << experiment.status();
    EXPECT_EQ(PartsOf(*experiment), static_cast<int>(row.parts()));
    EXPECT_EQ(experiment->has_tensor(), row.parts() > 1);
    EXPECT_EQ(experiment->compression().has_sums(), row.parts() > 1);
    EXPECT_EQ(row.sums_seconds() > 0, row.parts() > 1);
    if (row.codec() == "none" && row.parts() > 1) {
      EXPECT_EQ(experiment->compression().sums().activations().codec(), "none");
    }
    if (!row.own()) continue;
    ++own;
    EXPECT_EQ(row.codec(), "the file's");
    EXPECT_EQ(row.replicas(), 1u);
    EXPECT_EQ(row.parts(), 2u);
    EXPECT_EQ(experiment->compression().sums().activations().bits(), 8u);
  }
  EXPECT_EQ(own, 1);
}

TEST(LayoutsOfPartsTest, PayOnFastLinksAndNeverOnSlowOnes) {
  const auto seconds = [](double rate, uint32_t stages, uint32_t parts) {
    for (const LayoutEstimate& row : RankedOfFour(rate)) {
      const bool is_it = row.replicas() == 1 && row.stages() == stages && row.parts() == parts;
      if (is_it && row.codec() == "none") return row.step_seconds();
    }
    ADD_FAILURE() << stages << ", " << parts;
    return 0.0;
  };
  EXPECT_LT(seconds(1e12, 1, 4), seconds(1e12, 2, 2));
  EXPECT_LT(seconds(1e12, 1, 4), seconds(1e12, 4, 1));
  EXPECT_GT(seconds(1e7, 1, 4), 5 * seconds(1e7, 4, 1));
  for (const LayoutEstimate& row : RankedOfFour(1e7)) {
    EXPECT_TRUE(row.parts() < 4 || row.limit() == "sums") << row.codec();
  }
}

TEST(LayoutsOfPartsTest, APriceIsOfAllMachines) {
  LayoutOptions options = Four();
  options.prices = {/*of_hour=*/3600, /*of_gigabyte=*/0};
  for (const LayoutEstimate& row : Ranked(With(), options, 1e9)) {
    EXPECT_NEAR(row.epoch_cost(), 4 * row.epoch_seconds(), 1e-9 * row.epoch_cost());
  }
}

TEST(LayoutsOfPartsTest, PartsThatDoNotDivideAreLeftOutOrRefusedByName) {
  LayoutOptions options = Four();
  const auto two_heads = *LayoutsFor(With({"model.heads=2", "tensor.parts=2"}), options);
  EXPECT_THAT(two_heads.left_out,
              Contains(HasSubstr("left out: tensor.parts is 4: transformer.h.0.attn has 2 heads")));
  // Codecs of sums remember nothing.
  options.codecs = {"low_rank(rank=2)"};
  EXPECT_THAT(LayoutsFor(With(), options)->left_out,
              Contains(HasSubstr("left out: 1 x 1 x 4, low_rank(rank=2): compression.sums")));
  options.parts = {3};
  EXPECT_EQ(LayoutsFor(With(), options).status().message(),
            "--parts: 3, want divisors of 4, the machines");
}

TEST(LayoutsOfPartsTest, TheTableNamesThem) {
  const Experiment experiment = With();
  const std::vector<LayoutEstimate> rows = Ranked(experiment, Four(), 1e8);
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, /*gflops=*/10);
  const Plan plan = *MakePlan(experiment, PlanAssumptions(), speeds);
  const std::string text = FormatLayouts(rows, Four(), {}, plan);
  EXPECT_THAT(text, HasSubstr("\n 1x1x4 "));
  EXPECT_THAT(text, HasSubstr("\n>1x2x2 "));
  EXPECT_THAT(text, HasSubstr("Layout: replicas x stages x parts. "));
  EXPECT_THAT(text, HasSubstr("A step of the first layout with several parts takes "));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(FormatLayouts(Ranked(With({}), Four(), 1e8), Four(), {}, plan),
              Not(HasSubstr("parts")));
}

}  // namespace
}  // namespace thinwire
