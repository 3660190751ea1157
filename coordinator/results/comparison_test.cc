#include "coordinator/results/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ComparisonTest : public ::testing::Test {
 protected:
  ComparisonTest() { std::filesystem::remove_all(root_); }

  // Writes a run of two steps and an epoch.
  void Write(const std::string& name, const std::vector<std::string>& overrides, uint64_t seed,
             double last_loss, double accuracy) {
    const std::string dir = absl::StrCat(root_, "/", name);
    std::filesystem::create_directories(dir);
    const auto experiment = ParseExperiment(
        absl::StrCat("name: a\nmodel: {name: resnet8, width: 4}\ndata: {name: digits}\nseed: ",
                     seed, "\npipeline: {cuts: [layer1]}\noptimizer: {lr: 0.1}\nepochs: 1\n"),
        "e.yaml", overrides);
    ASSERT_TRUE(experiment.ok()) << experiment.status();
    std::ofstream(dir + "/experiment.yaml") << ToYaml(*experiment);
    const std::string test =
        absl::StrCat(R"({"compressed": {"loss": 1.5, "accuracy": )", accuracy, "}}");
    std::ofstream(dir + "/summary.json")
        << R"({"status": "completed", "seed": )" << seed
        << R"(, "boundaries": [], "epochs": [{"test": )" << test << "}]}";
    std::ofstream(dir + "/metrics.jsonl")
        << R"({"type": "step", "epoch": 1, "step": 1, "loss": 2.5})"
        << "\n"
        << R"({"type": "step", "epoch": 1, "step": 2, "loss": )" << last_loss << "}\n"
        << R"({"type": "epoch", "epoch": 1, "train": {"loss": )" << last_loss << R"(}, "test": )"
        << test << "}\n";
  }
  std::string Compared(const std::string& left, const std::string& right) {
    const auto l = FindRuns(absl::StrCat(root_, "/", left)),
               r = FindRuns(absl::StrCat(root_, "/", right));
    EXPECT_TRUE(l.ok() && r.ok()) << l.status() << r.status();
    const auto text = Comparison(*l, *r);
    return text.ok() ? *text : std::string(text.status().message());
  }

  const std::string root_ = ::testing::TempDir() + "/comparison";
};

TEST_F(ComparisonTest, EqualRunsAreSaidToBe) {
  Write("a", {}, 1, 2.25, 0.5);
  Write("b", {}, 1, 2.25, 0.5);
  const std::string text = Compared("a", "b");
  EXPECT_THAT(text, HasSubstr("configuration: equal\n"));
  EXPECT_THAT(text, HasSubstr("losses are equal in 2 steps, all of both\n"));
}

TEST_F(ComparisonTest, TellsFieldsTheFirstStepAndEpochs) {
  Write("a", {}, 1, 2.25, 0.5);
  Write("b", {"compression.activations.codec=fp16"}, 1, 2.125, 0.75);
  const std::string text = Compared("a", "b");
  EXPECT_THAT(text, HasSubstr("  compression.activations.codec: none | fp16\n"));
  EXPECT_THAT(text, HasSubstr("first diverging step: 2 of epoch 1, loss 2.25 | 2.125\n"));
  EXPECT_THAT(text, HasSubstr("2.2500 2.1250 (-0.1250)"));
  EXPECT_THAT(text, HasSubstr("0.5000 0.7500 (+0.2500)"));
  EXPECT_THAT(text, HasSubstr("with codecs: +25.00 points of accuracy of 1 pair\n"));
}

// Worked by hand: the differences are 1, 2 and 3 points.
TEST_F(ComparisonTest, SetsPairByRowAndSeed) {
  for (uint64_t seed : {1, 2, 3}) {
    Write(absl::StrCat("x/runs/topk-seed", seed), {}, seed, 2.25, 0.5);
    Write(absl::StrCat("y/runs/topk-seed", seed), {}, seed, 2.25, 0.5 + 0.01 * seed);
    Write(absl::StrCat("y/runs/fp16-seed", seed), {}, seed, 2.25, 0.9);
  }
  const std::string text = Compared("x", "y");
  EXPECT_THAT(text,
              HasSubstr("topk, with codecs: +2.00 [-0.48, +4.48] points of accuracy of 3 pairs\n"));
  EXPECT_THAT(text, Not(HasSubstr("fp16")));
}

TEST_F(ComparisonTest, NothingToCompareIsAnError) {
  Write("x/runs/a-seed1", {}, 1, 2.25, 0.5);
  Write("y/runs/b-seed1", {}, 1, 2.25, 0.5);
  EXPECT_THAT(Compared("x", "y"), HasSubstr("has the row and the seed of one in"));
  EXPECT_TRUE(absl::IsNotFound(FindRuns(root_ + "/nothing").status()));
}

}  // namespace
}  // namespace thinwire
