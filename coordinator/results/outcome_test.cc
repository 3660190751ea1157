#include "coordinator/results/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/files/summary.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

Summary Parsed(const std::string& text) {
  Summary summary;
  const absl::Status parsed = FromJson(text, "summary", &summary);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return summary;
}

Outcome Ended(const std::string& row, uint64_t seed, double compressed, double uncompressed) {
  return {row, seed, false, compressed, uncompressed, 1.5e6};
}

TEST(OutcomeTest, IsTheLastEvaluationAndAllThatWasSent) {
  const auto outcome = OutcomeOf("a", Parsed(R"({"status": "completed", "seed": 3,
    "epochs": [{"test": {"compressed": {"loss": 1, "accuracy": 0.5, "perplexity": null},
                         "uncompressed": null}},
               {"test": {"compressed": {"loss": 1, "accuracy": 0.75, "perplexity": null},
                         "uncompressed": {"loss": 1, "accuracy": 0.25, "perplexity": null}}},
               {"test": null}],
    "boundaries": [{"activations": {"wire_bytes": 10}, "gradients": {"wire_bytes": 5}},
                   {"activations": {"wire_bytes": 1}, "gradients": {"wire_bytes": 2}}]})"));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->seed, 3u);
  EXPECT_FALSE(outcome->is_loss);
  EXPECT_EQ(outcome->compressed, 0.75);
  EXPECT_EQ(outcome->uncompressed, 0.25);
  EXPECT_EQ(outcome->wire_bytes, 18);
}

TEST(OutcomeTest, OfALanguageModelIsItsLoss) {
  const auto outcome = OutcomeOf("a", Parsed(R"({"status": "completed", "seed": 3,
    "epochs": [{"test": {"compressed": {"loss": 2.5, "accuracy": 0.5, "perplexity": 12.18},
                         "uncompressed": null}}], "boundaries": []})"));
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->is_loss);
  EXPECT_EQ(outcome->compressed, 2.5);
  EXPECT_EQ(outcome->uncompressed, std::nullopt);
}

TEST(OutcomeTest, OfScoresIsTheLossToo) {
  const auto outcome = OutcomeOf("a", Parsed(R"({"status": "completed", "seed": 3,
    "epochs": [{"test": {"compressed": null,
                         "uncompressed": {"loss": 2.5, "accuracy": null}}}], "boundaries": []})"));
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->is_loss);
  EXPECT_EQ(outcome->uncompressed, 2.5);
}

TEST(OutcomeTest, ARunThatIsNotCompletedHasNone) {
  EXPECT_FALSE(OutcomeOf("a", Parsed(R"({"status": "failed"})")).ok());
}

// Worked by hand: differences -1, -2, -3 points; mean -2, sd 1, half-width 2.48.
TEST(OutcomeTest, RowsHaveMeansDeviationsAndPairedDifferences) {
  const std::string table = OutcomeTable(
      {Ended("none", 1, 0.90, 0.90), Ended("topk", 1, 0.89, 0.5), Ended("none", 2, 0.92, 0.92),
       Ended("topk", 2, 0.90, 0.5), Ended("none", 3, 0.94, 0.94), Ended("topk", 3, 0.91, 0.5),
       Ended("other", 9, 0.5, 0.5)},
      "none");
  EXPECT_EQ(table,
            "test accuracy, %  runs   with codecs       without      sent  with codecs, less none\n"
            "none                 3  92.00 ± 2.00  92.00 ± 2.00  1.500 MB\n"
            "topk                 3  90.00 ± 1.00  50.00 ± 0.00  1.500 MB    -2.00 [-4.48, +0.48]\n"
            "other                1         50.00         50.00  1.500 MB\n"
            "mean ± standard deviation of the runs; differences paired by seed, with 95 % "
            "intervals\n");
}

TEST(OutcomeTest, OnePairHasNoInterval) {
  EXPECT_EQ(PairedText({Ended("a", 1, 0.5, 0.5)}, {Ended("b", 1, 0.75, 0.5), Ended("b", 2, 0, 0)},
                       &Outcome::compressed),
            "+25.00");
}

}  // namespace
}  // namespace thinwire
