#include "config/differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

constexpr char kText[] =
    "name: a\nmodel: {name: resnet8, width: 4}\ndata: {name: digits}\n"
    "pipeline: {cuts: [layer1]}\noptimizer: {lr: 0.1}\nlr_schedule: {name: cosine}\nepochs: 1\n"
    "compression: {activations: {codec: topk, ratio: 0.1}}\n";

Experiment With(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kText, "f.yaml", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

std::vector<std::string> Spelled(const Experiment& left, const Experiment& right) {
  std::vector<std::string> lines;
  for (const FieldDifference& d : Differences(left, right)) {
    lines.push_back(d.path + ": " + d.left + " / " + d.right);
  }
  return lines;
}

TEST(DifferencesTest, EqualExperimentsHaveNone) {
  EXPECT_THAT(Differences(With({}), With({"epochs=1"})), ElementsAre());
}

TEST(DifferencesTest, NamesEachFieldWithBothValuesInTheOrderOfTheSchema) {
  EXPECT_THAT(Spelled(With({}), With({"epochs=2", "compression.activations.ratio=0.2",
                                      "pipeline.cuts=[layer1, layer2]", "pipeline.stages=2"})),
              ElementsAre("pipeline.cuts: [layer1] / [layer1, layer2]",
                          "compression.activations.ratio: 0.1 / 0.2", "lr_schedule.t_max: 1 / 2",
                          "epochs: 1 / 2"));
}

TEST(DifferencesTest, AFieldThatOneSideLacksIsEmptyThere) {
  const Experiment without = With({}), with = With({"init=/models/a"});
  EXPECT_THAT(Spelled(without, with), ElementsAre("init:  / /models/a"));
  EXPECT_THAT(Spelled(with, without), ElementsAre("init: /models/a / "));
}

}  // namespace
}  // namespace thinwire
