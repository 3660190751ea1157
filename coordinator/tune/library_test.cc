#include "coordinator/tune/library.h"

#include <set>

#include "config/differences.h"
#include "config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kImages[] = R"(
model: {name: resnet18, width: 16}
data: {name: digits, batch_size: 64}
pipeline: {cuts: [layer1, layer2, layer3], microbatches: 2}
optimizer: {lr: 0.1}
epochs: 1
)";
constexpr char kText[] = R"(
model: {name: gpt2, layers: 4, heads: 4, width: 128}
data: {name: shakespeare, context: 64, windows: 3000, batch_size: 12}
pipeline: {cuts: [h.0, h.1, h.2]}
optimizer: {name: adamw, lr: 0.001}
epochs: 1
)";

Experiment Of(const char* text, const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(text, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

TEST(StandardPairsTest, AreExperimentsOfTheirKindOfModelWithNamesOfTheirOwn) {
  for (const bool tokens : {false, true}) {
    std::set<std::string> names;
    for (const TuneCandidate& one : StandardPairs(tokens)) {
      EXPECT_TRUE(names.insert(one.name()).second) << one.name();
      const auto experiment = WithCandidate(Of(tokens ? kText : kImages), one);
      ASSERT_TRUE(experiment.ok()) << experiment.status();
      EXPECT_TRUE(CodecsText(*experiment).ok()) << one.name();
    }
  }
}

TEST(WithCandidateTest, LeavesNothingOfTheExperimentsOwnCompression) {
  const Experiment own = Of(
      kImages, {"compression.activations={codec: topk, ratio: 0.1}", "compression.warmup_epochs=1",
                "compression.boundaries.layer1.gradients={codec: fp16}"});
  const auto none = WithCandidate(own, TuneCandidate());
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(Differences(*none, Of(kImages)).empty());
}

TEST(WithCandidateTest, TakesItsMicrobatchesAndNamesItInErrors) {
  TuneCandidate one;
  one.set_name("mine");
  one.set_microbatches(4);
  EXPECT_EQ(WithCandidate(Of(kImages), one)->pipeline().microbatches(), 4u);
  one.set_compression("gradients: {codec: uniform, bits: 9}");
  EXPECT_THAT(std::string(WithCandidate(Of(kImages), one).status().message()),
              HasSubstr("mine: compression.gradients"));
}

TEST(WithCandidateTest, CompressesActivationsAloneWhereNoGradientsCross) {
  const Experiment frozen = Of(kText, {"freeze=[embedding, h.0, h.1, h.2]"});
  for (const TuneCandidate& one : StandardPairs(/*tokens=*/true)) {
    const auto experiment = WithCandidate(frozen, one);
    ASSERT_TRUE(experiment.ok()) << experiment.status();
    EXPECT_EQ(experiment->compression().gradients().codec(), "none") << one.name();
  }
}

TEST(OwnPairTest, IsThereWhereTheExperimentCompresses) {
  EXPECT_TRUE(OwnPair(Of(kImages)).empty());
  const Experiment own = Of(kImages, {"compression.activations={codec: topk, ratio: 0.1}"});
  const std::vector<TuneCandidate> pairs = OwnPair(own);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].name(), "own");
  EXPECT_TRUE(Differences(*WithCandidate(own, pairs[0]), own).empty());
}

TEST(GivenPairTest, SpellsOutBothDirectionsAndNamesTheFlagInErrors) {
  const auto pair = GivenPair("topk(ratio=0.1, scope=sample) | fp8", "", 2);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->name(), "given-2");
  EXPECT_THAT(*CodecsText(*WithCandidate(Of(kImages), *pair)), HasSubstr(" | fp8(format=e4m3)"));
  EXPECT_THAT(std::string(GivenPair("topq", "", 1).status().message()), HasSubstr("--codec: "));
}

std::vector<std::string> NamesIn(const TuneReport& report) {
  std::vector<std::string> names;
  for (const TuneCandidate& one : report.candidates()) names.push_back(one.name());
  return names;
}

TEST(AddCandidatesTest, TakesTheCodecsThatAreGivenInPlaceOfTheLibrary) {
  const Experiment own = Of(kImages, {"compression.activations={codec: topk, ratio: 0.1}"});
  TuneReport report;
  report.mutable_task()->add_codecs("fp8");
  report.mutable_task()->add_codecs("fp16 | fp8");
  const absl::Status added = AddCandidates(own, /*tokens=*/false, &report);
  ASSERT_TRUE(added.ok()) << added;
  EXPECT_THAT(NamesIn(report), ElementsAre("none", "own", "given-1", "given-2"));
  EXPECT_THAT(report.candidates(1).codecs(), HasSubstr("topk(ratio=0.1"));
  report.mutable_task()->add_codecs("topq");
  EXPECT_THAT(std::string(AddCandidates(own, false, &report).message()), HasSubstr("--codec: "));
}

TEST(AddCandidatesTest, LeavesOutWhatTheModelRefusesAndSaysWhy) {
  TuneReport report;
  const Experiment text = Of(kText);
  ASSERT_TRUE(AddCandidates(text, /*tokens=*/true, &report).ok());
  EXPECT_EQ(report.candidates_size() + report.left_out_size(),
            static_cast<int>(StandardPairs(true).size()) + 1);
  TuneReport refusing;
  refusing.mutable_task()->add_codecs("low_rank(rank=4096)");
  ASSERT_TRUE(AddCandidates(text, /*tokens=*/true, &refusing).ok());
  EXPECT_THAT(NamesIn(refusing), ElementsAre("none"));
  ASSERT_EQ(refusing.left_out_size(), 1);
  EXPECT_THAT(refusing.left_out(0), HasSubstr("4096"));
}

}  // namespace
}  // namespace thinwire
