#include "coordinator/probe/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "config/experiment.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Returns the error of a Gaussian source of that variance at rates 0 to 16: each bit divides it by
// four.
RateCurve Gaussian(double variance, double elements) {
  RateCurve curve;
  curve.elements = elements;
  for (const double bits : {0.0, 1.0, 2.0, 4.0, 8.0, 16.0}) {
    curve.points.push_back({bits, variance * std::exp2(-2 * bits)});
  }
  return curve;
}

TEST(ShareBitsTest, IsReverseWaterFillingOfGaussianSources) {
  // All directions get the same error, except one whose variance is below it.
  const std::vector<double> rates =
      ShareBits({Gaussian(16, 1), Gaussian(4, 1), Gaussian(0.01, 1)}, 1);
  EXPECT_THAT(rates, ElementsAre(DoubleNear(2, 1e-6), DoubleNear(1, 1e-6), DoubleNear(0, 1e-6)));
}

TEST(ShareBitsTest, ABitForEachOfMoreElementsCostsMore) {
  // Slopes are equal. With a fourth of the elements the error is a fourth: one bit more.
  const std::vector<double> rates = ShareBits({Gaussian(1, 1), Gaussian(1, 4)}, 2);
  EXPECT_NEAR(rates[0] - rates[1], 1, 1e-6);
  EXPECT_NEAR((rates[0] + 4 * rates[1]) / 5, 2, 1e-6);
}

TEST(ShareBitsTest, AnErrorThatGrowsWithTheRateIsNotBelieved) {
  RateCurve noisy = Gaussian(1, 1);
  noisy.points[2].squared_error = 5;
  EXPECT_THAT(ShareBits({noisy}, 2), ElementsAre(DoubleNear(2, 1e-6)));
  EXPECT_NEAR(SquaredErrorAt(noisy, 2), std::exp2(-4), 1e-12);
}

TEST(ShareBitsTest, StaysWithinWhatWasMeasured) {
  EXPECT_THAT(ShareBits({Gaussian(1, 1), Gaussian(9, 3)}, 20), ElementsAre(16, 16));
  RateCurve exact{1, {{0.5, 0.25}, {1, 0}}};
  EXPECT_THAT(ShareBits({exact}, 0.1), ElementsAre(0.5));
  EXPECT_THAT(ShareBits({exact}, 1), ElementsAre(DoubleNear(1, 1e-9)));
}

constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1, layer2]}
compression: {activations: {codec: topk, ratio: 0.1}}
optimizer: {lr: 0.1}
epochs: 2
)";

TEST(ParseBudgetTest, WantsCodecsWithARate) {
  EXPECT_TRUE(ParseBudget(1.25, "ecsq(rounding=dead_zone) | ecsq(rounding=dither)").ok());
  EXPECT_THAT(std::string(ParseBudget(1, "topk(ratio=0.1, scope=sample)").status().message()),
              HasSubstr("want ecsq, which takes a rate"));
  EXPECT_THAT(std::string(ParseBudget(17, "ecsq").status().message()),
              HasSubstr("rate is 17, want 0.03125 to 16"));
}

TEST(BudgetConfigurationsTest, EachDirectionOfEachCutIsProbedAloneAtEachRate) {
  const Experiment experiment = *ParseExperiment(kExperiment, "test", {});
  const Budget budget = *ParseBudget(1, "ecsq");
  const auto all = BudgetConfigurations(budget, experiment);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, SizeIs(2 * 2 * 7));
  EXPECT_THAT(*BudgetConfigurations(*ParseBudget(0.0625, "ecsq"), experiment), SizeIs(2 * 2 * 5));
  for (const ProbeConfiguration& one : *all) {
    const auto with = WithCodecs(experiment, one);
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_EQ(with->compression().activations().codec(), "none");
    int compressed = 0;
    for (const char* cut : {"layer1", "layer2"}) {
      for (const bool gradient : {false, true}) {
        const DirectionConfig& does = DirectionOf(*with, cut, gradient);
        if (does.codec() == "none") continue;
        ++compressed;
        EXPECT_EQ(cut, one.cut);
        EXPECT_EQ(gradient, one.gradients.has_value());
        EXPECT_EQ(does.rate().bits(), (gradient ? one.gradients : one.activations)->rate);
      }
    }
    EXPECT_EQ(compressed, 1);
  }
}

// Adds a row such as the probe makes of a direction whose error halves with each bit.
void AddRow(const ProbeConfiguration& configuration, double error, ProbeReport* report) {
  const bool is_gradient = configuration.gradients.has_value();
  const double bits = (is_gradient ? configuration.gradients : configuration.activations)->rate;
  ProbeRow* const row = report->add_rows();
  row->set_cut(configuration.cut);
  ProbeBoundary* const boundary = row->add_boundaries();
  boundary->set_gradient(is_gradient);
  boundary->set_bits_per_element(bits);
  row->mutable_all()->mutable_relative_error()->set_mean(error * std::exp2(-bits));
}

TEST(AddSharesTest, TheShareIsAFileOfItsOwnAndTakesTheBudget) {
  const Experiment experiment = *ParseExperiment(kExperiment, "test", {});
  const Budget budget = *ParseBudget(2, "ecsq(rounding=dead_zone) | ecsq(rounding=dither)");
  ProbeReport report;
  const auto all = BudgetConfigurations(budget, experiment);
  ASSERT_TRUE(all.ok()) << all.status();
  for (const ProbeConfiguration& one : *all) {
    AddRow(one, one.gradients ? 0.5 : 1, &report);
  }
  ASSERT_TRUE(AddShares(budget, experiment, &report).ok());
  const ProbeBudget& shared = report.budget();
  ASSERT_EQ(shared.shares_size(), 4);
  // One has twice the error.
  EXPECT_NEAR(shared.shares(0).rate() - shared.shares(1).rate(), 1, 1e-3);
  // One has half the elements.
  EXPECT_NEAR(shared.shares(2).rate() - shared.shares(0).rate(), 0.5, 1e-3);
  EXPECT_LT(shared.relative_error(), shared.equal_relative_error());
  const std::string plain =
      "model: {name: resnet8}\ndata: {name: digits}\noptimizer: {lr: 0.1}\n"
      "pipeline: {cuts: [layer1, layer2]}\nepochs: 2\n";
  const auto shares = ParseExperiment(plain + SharesYaml(shared), "shares", {});
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_EQ(DirectionOf(*shares, "layer1", true).rounding(), "dither");
  double bits = 0, elements = 0;
  for (const char* cut : {"layer1", "layer2"}) {
    const double here = cut == std::string("layer1") ? 2 : 1;
    for (const bool gradient : {false, true}) {
      bits += here * DirectionOf(*shares, cut, gradient).rate().bits();
      elements += here;
    }
  }
  EXPECT_NEAR(bits / elements, 2, 1e-3);
}

TEST(AddSharesTest, GradientsThatDoNotCrossHaveNoShare) {
  const Experiment experiment = *ParseExperiment(kExperiment, "test", {"freeze=[stem, layer1]"});
  const Budget budget = *ParseBudget(2, "ecsq");
  const auto all = BudgetConfigurations(budget, experiment);
  ASSERT_TRUE(all.ok()) << all.status();
  ProbeReport report;
  for (const ProbeConfiguration& one : *all) {
    EXPECT_TRUE(one.activations || one.cut == "layer2");
    AddRow(one, 1, &report);
  }
  ASSERT_TRUE(AddShares(budget, experiment, &report).ok());
  std::vector<std::string> shares;
  for (const ProbeShare& share : report.budget().shares()) {
    shares.push_back(share.cut() + (share.gradient() ? " gradients" : " activations"));
  }
  EXPECT_THAT(shares, ElementsAre("layer1 activations", "layer2 activations", "layer2 gradients"));
}

}  // namespace
}  // namespace thinwire
