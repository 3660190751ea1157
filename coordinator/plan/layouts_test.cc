#include "coordinator/plan/layouts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kExperiment[] = R"(
name: laid_out
model: {name: gpt2, layers: 6, heads: 2, width: 32}
data: {name: shakespeare, context: 16, batch_size: 24, limit: 240}
pipeline: {microbatches: 2, stages: 4}
compression: {activations: {codec: uniform, bits: 4}}
optimizer: {name: adamw, lr: 0.01}
epochs: 2
)";

Experiment With(const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

LayoutOptions Eight() {
  LayoutOptions options;
  options.machines = 8;
  options.memory_bytes = 1e12;
  return options;
}

Speeds SpeedsOf(const Experiment& experiment) {
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, /*gflops=*/10);
  speeds.others = *CodingAt(/*gigabytes_per_second=*/2);
  return speeds;
}

PlanAssumptions At(double bits_per_second) {
  PlanAssumptions assumptions;
  assumptions.bits_per_second = {bits_per_second};
  return assumptions;
}

std::vector<LayoutEstimate> Ranked(const Experiment& experiment, const LayoutOptions& options,
                                   double bits_per_second = 100e6) {
  const auto layouts = LayoutsFor(experiment, options);
  EXPECT_TRUE(layouts.ok()) << layouts.status();
  const auto ranked =
      RankedLayouts(layouts->all, options, At(bits_per_second), SpeedsOf(experiment));
  EXPECT_TRUE(ranked.ok()) << ranked.status();
  return *ranked;
}

// Returns the ranked layouts of eight machines at this link rate, which several tests look at.
const std::vector<LayoutEstimate>& RankedOfEight(double bits_per_second = 100e6) {
  static auto* const ranked = new std::map<double, std::vector<LayoutEstimate>>;
  std::vector<LayoutEstimate>& rows = (*ranked)[bits_per_second];
  if (rows.empty()) rows = Ranked(With(), Eight(), bits_per_second);
  return rows;
}

const LayoutEstimate& Row(const std::vector<LayoutEstimate>& rows, uint32_t replicas,
                          const std::string& codec, uint32_t every = 1) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const LayoutEstimate& row) {
    return row.replicas() == replicas && row.codec() == codec &&
           (!row.has_every() || row.every() == every);
  });
  EXPECT_NE(found, rows.end()) << replicas << ", " << codec << ", " << every;
  return *found;
}

TEST(LayoutsTest, AreAllProductsThatMakeTheMachines) {
  const std::vector<LayoutEstimate>& rows = RankedOfEight();
  std::set<std::string> layouts, codecs;
  for (const LayoutEstimate& row : rows) {
    EXPECT_EQ(row.replicas() * row.stages(), 8u);
    layouts.insert(absl::StrCat(row.replicas(), "x", row.stages(), row.has_every() ? "/" : "",
                                row.has_every() ? absl::StrCat(row.every()) : ""));
    codecs.insert(row.codec());
  }
  EXPECT_THAT(layouts, ElementsAre("1x8", "2x4/1", "2x4/16", "2x4/64", "4x2/1", "4x2/16", "4x2/64",
                                   "8x1/1", "8x1/16", "8x1/64"));
  EXPECT_THAT(codecs, ElementsAre("ecsq(rate=2)", "none", "the file's", "uniform(bits=8)"));
  EXPECT_THAT(rows, SizeIs(10 * 4));
}

TEST(LayoutsTest, AreRankedByTime) {
  const std::vector<LayoutEstimate>& rows = RankedOfEight();
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LE(rows[i - 1].step_seconds(), rows[i].step_seconds());
  }
  for (const LayoutEstimate& row : rows) {
    EXPECT_DOUBLE_EQ(row.samples_per_second(), 24 / row.step_seconds());
    EXPECT_DOUBLE_EQ(row.epoch_seconds(), 10 * row.step_seconds());
    EXPECT_LE(row.machine_wire_bytes(), row.wire_bytes());
    EXPECT_FALSE(row.has_epoch_cost());
  }
}

TEST(LayoutsTest, EachIsAnExperimentFile) {
  for (const LayoutEstimate& row : RankedOfEight()) {
    const auto experiment = ParseExperiment(row.experiment(), "row", {});
    ASSERT_TRUE(experiment.ok()) << experiment.status();
    EXPECT_EQ(ReplicasOf(*experiment), row.replicas());
    EXPECT_EQ(experiment->pipeline().stages(), row.stages());
    EXPECT_EQ(experiment->pipeline().microbatches(), row.microbatches());
    if (!row.has_every()) continue;
    EXPECT_EQ(ReplicasFrom(*experiment)->every, row.every());
  }
}

// The layout of one replica is the experiment with as many stages.
TEST(LayoutsTest, OneReplicaIsThePlanOfSoManyStages) {
  for (const int stages : {1, 2, 4, 8}) {
    LayoutOptions options = Eight();
    options.machines = stages;
    options.microbatches = {2};
    const LayoutEstimate row = Row(Ranked(With(), options), 1, "the file's");
    const Experiment alone = With({absl::StrCat("pipeline.stages=", stages)});
    const Plan plan = *MakePlan(alone, At(100e6), SpeedsOf(alone));
    EXPECT_EQ(row.step_seconds(), plan.steps[0].seconds());
    EXPECT_EQ(row.wire_bytes(), static_cast<uint64_t>(StepWireBytes(plan)));
    EXPECT_EQ(row.memory_bytes(), static_cast<uint64_t>(LargestMemoryBytes(plan)));
    EXPECT_FALSE(row.has_every());
    EXPECT_EQ(row.own(), stages == 4);
  }
}

TEST(LayoutsTest, ReplicasArePlannedAsTheyStandInAFile) {
  LayoutOptions options = Eight();
  options.microbatches = {3};
  const LayoutEstimate row = Row(Ranked(With(), options), 4, "uniform(bits=8)");
  const std::string uniform = "{codec: uniform, bits: 8, scope: tensor, rounding: nearest}";
  const Experiment alone = With(
      {"pipeline.stages=2", "pipeline.microbatches=3",
       absl::StrCat("compression.activations=", uniform),
       absl::StrCat("compression.gradients=", uniform),
       absl::StrCat("replicas={count: 4, contributions: ", uniform, ", average: ", uniform, "}")});
  const Plan plan = *MakePlan(alone, At(100e6), SpeedsOf(alone));
  EXPECT_NEAR(row.step_seconds(), plan.steps[0].seconds(), 1e-4 * row.step_seconds());
  EXPECT_EQ(row.microbatches(), 3u);
  EXPECT_EQ(row.machine_wire_bytes(), static_cast<uint64_t>(MachineWireBytes(plan)));
}

// Segments are others where cuts are, and the codecs that are tried are for all of them.
TEST(LayoutsTest, EntriesOfSegmentsAreLeftAwayWithTheirCuts) {
  const std::string general = "replicas={count: 2, contributions: {codec: uniform, bits: 8}}";
  const Experiment plain = With({general});
  const std::string first = plain.pipeline().cuts(0);
  const Experiment own = With(
      {general, absl::StrCat("replicas.stages={", first, ": {contributions: {codec: fp16}}}")});
  const auto of_plain = LayoutsFor(plain, Eight()), of_own = LayoutsFor(own, Eight());
  ASSERT_TRUE(of_plain.ok() && of_own.ok());
  EXPECT_EQ(of_own->left_out, of_plain->left_out);
  EXPECT_EQ(of_own->all.size(), of_plain->all.size());
  for (const Layout& layout : of_own->all) {
    EXPECT_EQ(layout.experiment.replicas().stages_size(), 0) << layout.codec;
  }
}

TEST(LayoutsTest, RareExchangesSendLessAndTakeMemory) {
  const std::vector<LayoutEstimate>& rows = RankedOfEight();
  for (const uint32_t replicas : {2, 4, 8}) {
    const LayoutEstimate &often = Row(rows, replicas, "none"),
                         &rare = Row(rows, replicas, "none", 64);
    EXPECT_LT(rare.step_seconds(), often.step_seconds());
    EXPECT_LT(rare.wire_bytes(), often.wire_bytes());
    EXPECT_GT(rare.memory_bytes(), often.memory_bytes());
  }
  // An epoch of ten steps ends with an exchange.
  const LayoutEstimate &often = Row(rows, 8, "none"), &rare = Row(rows, 8, "none", 64);
  EXPECT_NEAR(static_cast<double>(often.wire_bytes()) / rare.wire_bytes(), 10, 1e-3);
}

TEST(LayoutsTest, TheFastestNumberOfMicrobatchesCounts) {
  LayoutOptions options = Eight();
  options.codecs = {"none"};
  const auto with = [&](const std::vector<int64_t>& counts) {
    options.microbatches = counts;
    return Row(Ranked(With(), options), 2, "none").step_seconds();
  };
  const double of_one = with({1}), of_six = with({6});
  EXPECT_EQ(with({1, 2, 6}), std::min({of_one, with({2}), of_six}));
  EXPECT_LT(of_six, of_one);  // four stages
  // A replica has 12 samples.
  options.microbatches = {24};
  EXPECT_EQ(Row(Ranked(With(), options), 2, "none").microbatches(), 12u);
}

TEST(LayoutsTest, TheExperimentItselfIsAlwaysThere) {
  LayoutOptions options = Eight();
  options.machines = 4;
  options.microbatches = {2, 6};
  const std::vector<LayoutEstimate> rows = Ranked(With(), options);
  std::vector<uint32_t> pipelines, own;
  for (const LayoutEstimate& row : rows) {
    if (row.replicas() == 1 && row.codec() == "the file's") {
      pipelines.push_back(row.microbatches());
      if (row.own()) own.push_back(row.microbatches());
    }
  }
  EXPECT_THAT(pipelines, ElementsAre(6, 2));
  EXPECT_THAT(own, ElementsAre(2));
  options.microbatches = {1, 2};
  EXPECT_TRUE(Row(Ranked(With(), options), 1, "the file's").own());
}

TEST(LayoutsTest, MoreBandwidthIsNeverSlower) {
  LayoutOptions options = Eight();
  options.machines = 4;
  options.microbatches = {2};
  const std::vector<double> rates = {1e6, 1e7, 1e8, 1e9, std::numeric_limits<double>::infinity()};
  std::vector<LayoutEstimate> before = Ranked(With(), options, rates[0]);
  for (size_t i = 1; i < rates.size(); ++i) {
    const std::vector<LayoutEstimate> rows = Ranked(With(), options, rates[i]);
    for (const LayoutEstimate& row : before) {
      const double seconds =
          Row(rows, row.replicas(), row.codec(), row.has_every() ? row.every() : 1).step_seconds();
      EXPECT_LE(seconds, (1 + 1e-9) * row.step_seconds()) << rates[i];
    }
    before = rows;
  }
}

TEST(LayoutsTest, WhatTakesMostOfAStepIsNamed) {
  EXPECT_EQ(Row(RankedOfEight(1e15), 2, "none").limit(), "compute");
  EXPECT_EQ(Row(RankedOfEight(1e6), 1, "none").limit(), "cuts");
  EXPECT_EQ(Row(RankedOfEight(1e6), 8, "none").limit(), "exchange");
}

TEST(LayoutsTest, WhatDoesNotFitComesLast) {
  LayoutOptions options = Eight();
  options.codecs = {"none"};
  options.memory_bytes = static_cast<double>(Row(RankedOfEight(), 2, "none").memory_bytes());
  const std::vector<LayoutEstimate> rows = Ranked(With(), options);
  EXPECT_TRUE(rows.front().fits());
  EXPECT_FALSE(rows.back().fits());
  EXPECT_EQ(rows.back().limit(), "memory");
  EXPECT_TRUE(Row(rows, 2, "none").fits());
  EXPECT_FALSE(Row(rows, 8, "none").fits());
  EXPECT_TRUE(std::is_partitioned(rows.begin(), rows.end(),
                                  [](const LayoutEstimate& row) { return row.fits(); }));
}

TEST(LayoutsTest, WithPricesTheCheapestIsFirst) {
  LayoutOptions options = Eight();
  options.codecs = {"none"};
  options.prices = {/*of_hour=*/3600, /*of_gigabyte=*/0};
  for (const LayoutEstimate& row : Ranked(With(), options)) {
    EXPECT_NEAR(row.epoch_cost(), 8 * row.epoch_seconds(), 1e-9 * row.epoch_cost());
  }
  options.prices = {0, /*of_gigabyte=*/1};
  const std::vector<LayoutEstimate> rows = Ranked(With(), options);
  for (const LayoutEstimate& row : rows) {
    EXPECT_NEAR(row.epoch_cost(), 10 * row.wire_bytes() / kPayloadShare / 1e9,
                1e-6 * row.epoch_cost());
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LE(rows[i - 1].epoch_cost(), rows[i].epoch_cost());
  }
}

TEST(LayoutsTest, CutsThatAUserNamedStayWhereThereAreEnough) {
  const Experiment own = With({"pipeline.stages=2", "pipeline.cuts=[h.0, h.3]"});
  const auto layouts = *LayoutsFor(own, Eight());
  for (const Layout& layout : layouts.all) {
    const auto& cuts = layout.experiment.pipeline().cuts();
    if (layout.stages <= 3) {
      EXPECT_THAT(cuts, ElementsAre("h.0", "h.3"));
    } else {
      EXPECT_EQ(cuts.size(), static_cast<int>(layout.stages) - 1);
    }
  }
  // `auto` makes as many as there are stages.
  const auto balanced = *LayoutsFor(With(), Eight());
  for (const Layout& layout : balanced.all) {
    const auto& cuts = layout.experiment.pipeline().cuts();
    if (layout.stages == 1) {
      EXPECT_THAT(cuts, ElementsAre("none"));
    } else {
      EXPECT_EQ(cuts.size(), static_cast<int>(layout.stages) - 1);
    }
  }
}

TEST(LayoutsTest, ImpossibleOnesAreLeftOutByName) {
  const auto layouts = *LayoutsFor(With({"data.batch_size=6"}), Eight());
  EXPECT_THAT(layouts.left_out,
              Contains(HasSubstr("left out: 8 x 1, the file's: replicas.count: 8")));
  const auto few = *LayoutsFor(With({"model.layers=3", "pipeline.stages=2"}), Eight());
  EXPECT_THAT(few.left_out,
              Contains(HasSubstr("left out: 1 x 8, the file's: pipeline.cuts: auto")));
  // Layers of a bottleneck stand at the cuts.
  const auto fixed = *LayoutsFor(
      With({"pipeline.stages=2", "compression.bottleneck={kind: linear, width: 8}"}), Eight());
  EXPECT_THAT(fixed.left_out,
              Contains(HasSubstr("left out: 1 x 8, the file's: pipeline.stages: stages is 8")));
}

TEST(LayoutsTest, WhereNoGradientsCrossActivationsAreCodedAlone) {
  LayoutOptions options = Eight();
  options.machines = 2;
  const auto layouts = LayoutsFor(
      With({"freeze=[embedding, h.0, h.1, h.2, h.3, h.4, h.5]", "pipeline.stages=2"}), options);
  ASSERT_TRUE(layouts.ok()) << layouts.status();
  int coded = 0;
  for (const Layout& layout : layouts->all) {
    if (layout.stages != 2 || layout.codec != "uniform(bits=8)") continue;
    ++coded;
    EXPECT_EQ(layout.experiment.compression().activations().codec(), "uniform");
    EXPECT_EQ(layout.experiment.compression().gradients().codec(), "none");
  }
  EXPECT_GT(coded, 0) << ::testing::PrintToString(layouts->left_out);
}

TEST(LayoutsTest, BatchNormLearnsOtherwiseWithOtherMicrobatchesOfABatch) {
  const Experiment images = *ParseExperiment(R"(
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 32}
pipeline: {microbatches: 4}
optimizer: {lr: 0.1}
epochs: 1
)",
                                             "test", {});
  LayoutOptions options = Eight();
  options.machines = 4;
  options.microbatches = {2};
  for (const LayoutEstimate& row : Ranked(images, options)) {
    EXPECT_EQ(row.learns_otherwise(), row.replicas() != 2) << row.replicas();
  }
  for (const LayoutEstimate& row : Ranked(With(), options)) EXPECT_FALSE(row.learns_otherwise());
}

TEST(LayoutsTest, BadInputIsRefusedByName) {
  const auto error = [](const LayoutOptions& options) {
    return std::string(LayoutsFor(With(), options).status().message());
  };
  LayoutOptions options = Eight();
  options.codecs = {"topq"};
  EXPECT_THAT(error(options), HasSubstr("--codec: "));
  options = Eight();
  options.microbatches = {25};
  EXPECT_EQ(error(options), "--microbatches: 25, want 1 to 24, the batch size");
  options = Eight();
  options.machines = 29;  // a prime, and neither so many blocks nor so many samples
  EXPECT_THAT(error(options), HasSubstr("--machines: 29: left out: 1 x 29"));
  options = Eight();
  options.prices = {-1, 0};
  EXPECT_EQ(error(options), "--price_hour: -1, want a finite number of at least 0");
  options.prices = {0, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(error(options), "--price_gb: inf, want a finite number of at least 0");
  options = Eight();
  options.memory_bytes = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error(options), "--memory_gb: nan, want a finite number of at least 0");
}

TEST(FormatLayoutsTest, HasARowForEach) {
  LayoutEstimate first;
  first.set_replicas(8);
  first.set_stages(1);
  first.set_codec("uniform(bits=8)");
  first.set_every(64);
  first.set_microbatches(1);
  first.set_learns_otherwise(true);
  first.set_step_seconds(0.0187);
  first.set_samples_per_second(641);
  first.set_machine_wire_bytes(31000);
  first.set_memory_bytes(30400000);
  first.set_fits(true);
  first.set_limit("compute");
  first.set_epoch_cost(0.000256);
  LayoutEstimate second = first;
  second.set_replicas(1);
  second.set_stages(8);
  second.set_own(true);
  second.set_learns_otherwise(false);
  second.clear_every();
  second.set_codec("none");
  const Plan plan = *MakePlan(With(), At(100e6), SpeedsOf(With()));
  const std::string head = " layout  step ms samples/s wire MB mem. MB part every limit    codec\n";
  const std::string row = " 8 x 1      18.7       641    0.03    30.4   1*    64 compute  ";
  EXPECT_THAT(FormatLayouts({first, second}, Eight(), {}, plan),
              StartsWith(head + row + "uniform(bits=8)\n" +
                         ">1 x 8      18.7       641    0.03    30.4   1      - compute  none\n"));
  LayoutOptions priced = Eight();
  priced.prices = Prices();
  EXPECT_THAT(FormatLayouts({first}, priced, {}, plan), HasSubstr("      18.7  0.000256    0.03 "));
}

TEST(FormatLayoutsTest, FitsEightyColumnsAndSaysWhatItSpeaksOf) {
  LayoutOptions options = Eight();
  options.machines = 4;
  options.prices = {0.5, 0.1};
  options.memory_bytes = 1e5;
  const auto layouts = *LayoutsFor(With(), options);
  const Plan plan = *MakePlan(With(), At(100e6), SpeedsOf(With()));
  const std::string text =
      FormatLayouts(*RankedLayouts(layouts.all, options, At(100e6), SpeedsOf(With())), options,
                    {"left out: this one"}, plan);
  EXPECT_THAT(text, ContainsRegex("\n>1 x 4 .* 2  .*- memory   the file's\n"));
  EXPECT_THAT(text, HasSubstr("speed, not of accuracy"));
  EXPECT_THAT(text, HasSubstr("Cheapest first"));
  EXPECT_THAT(text, HasSubstr("left out: this one\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace thinwire
