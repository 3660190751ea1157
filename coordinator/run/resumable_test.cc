#include "coordinator/run/resumable.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Experiment With(const std::vector<std::string>& overrides) {
  return *ParseExperiment(R"(
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 10}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
epochs: 3
)",
                          "f.yaml", overrides);
}

TEST(ResumableTest, WhatTheStateIsNotAboutMayDiffer) {
  EXPECT_TRUE(CheckGoesOn(With({}), With({"epochs=9", "pipeline.stages=2", "optimizer.lr=0.01",
                                          "pipeline.cuts=[stem]", "optimizer.momentum=0.5",
                                          "compression.activations={codec: topk, ratio: 0.1}"}))
                  .ok());
}

TEST(ResumableTest, WhatSaysWhatTheDefaultSaysIsNoDifference) {
  const auto of = [](const std::string& family, const std::vector<std::string>& overrides) {
    std::vector<std::string> all = {"model.name=" + family};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return *ParseExperiment(R"(
model: {width: 32, layers: 1, heads: 2}
data: {name: shakespeare, context: 16}
optimizer: {lr: 0.1}
epochs: 3
)",
                            "f.yaml", all);
  };
  const auto text = [&](const std::vector<std::string>& overrides) {
    return of("gpt2", overrides);
  };
  for (const char* said :
       {"model.hidden=128", "model.context=16", "model.dropout=0", "model.gelu=tanh",
        "data.tokens=characters", "data.augment=true",
        "data.corpus={vocabulary: 65, train_tokens: 1003854, test_tokens: 111540}"}) {
    EXPECT_EQ(CheckGoesOn(text({}), text({said})).message(), "") << said;
    EXPECT_EQ(CheckGoesOn(text({said}), text({})).message(), "") << said;
  }
  for (const char* said : {"model.kv_heads=2", "model.hidden=256"}) {
    EXPECT_EQ(CheckGoesOn(of("llama", {}), of("llama", {said})).message(), "") << said;
  }
  EXPECT_FALSE(CheckGoesOn(text({}), text({"model.hidden=64"})).ok());
  const Seeds seeds = SeedsFrom(With({}));
  EXPECT_EQ(CheckGoesOn(With({}), With({absl::StrCat("seeds.init=", seeds.init)})).message(), "");
}

TEST(ResumableTest, TheAdapterThatItBeganWithMayBeGone) {
  Experiment then = With({});
  then.mutable_lora()->set_rank(4);
  Experiment now = then;
  now.mutable_lora()->set_init("elsewhere");
  EXPECT_TRUE(CheckGoesOn(then, now).ok());
  now.mutable_lora()->set_rank(8);
  EXPECT_THAT(std::string(CheckGoesOn(then, now).message()), HasSubstr("lora.rank"));
}

TEST(ResumableTest, WhatItIsAboutIsNamedWithBothValues) {
  EXPECT_EQ(CheckGoesOn(With({}), With({"model.width=8"})).message(),
            "the run cannot go on as another: modified: model.width: 4 -> 8");
  for (const char* override :
       {"data.batch_size=20", "seed=2", "optimizer.momentum=0", "optimizer={name: adamw}",
        "precision=bf16", "freeze=stem", "data.limit=100", "data.held_out=100"}) {
    EXPECT_FALSE(CheckGoesOn(With({}), With({override})).ok()) << override;
  }
}

// A run on byte pairs as recorded by older builds, which took <|endoftext|> for characters.
Experiment OfText(const std::vector<std::string>& overrides) {
  return *ParseExperiment(R"(
model: {name: gpt2, layers: 1, heads: 1, width: 8}
data: {name: text, file: a, context: 8, batch_size: 2, corpus: {vocabulary: 300, train_tokens: 99, test_tokens: 99}}
optimizer: {lr: 0.1}
epochs: 1
)",
                          "f.yaml", overrides);
}

TEST(ResumableTest, TheEndOfTextsMattersWhereTheTextHasOtherTokensByIt) {
  const Experiment then = OfText({});
  Experiment now = then;
  now.mutable_data()->set_end_of_text("token");
  EXPECT_TRUE(CheckGoesOn(then, now).ok()) << "there is none in the text";
  now.mutable_data()->mutable_corpus()->set_train_tokens(90);
  EXPECT_THAT(std::string(CheckGoesOn(then, now).message()),
              AllOf(HasSubstr("train_tokens: 99 -> 90"), HasSubstr("\"characters\" -> \"token\"")));
}

class OtherDataTest : public ::testing::Test {
 protected:
  OtherDataTest() {
    manifest_.set_train_digest("aa");
    manifest_.set_test_digest("bb");
    provenance_.set_train_digest("aa");
    provenance_.set_test_digest("bb");
  }
  absl::StatusOr<std::string> Other(const std::vector<std::string>& now = {}) const {
    return OtherData(OfText({}), OfText(now), manifest_, provenance_);
  }

  CheckpointManifest manifest_;
  Provenance provenance_;
};

TEST_F(OtherDataTest, TheSameDataAreNotTalkedOf) {
  EXPECT_EQ(*Other(), "");
  manifest_.clear_train_digest();
  manifest_.clear_test_digest();
  EXPECT_EQ(*Other(), "") << "nobody knows";
}

TEST_F(OtherDataTest, OthersUnderTheSameNameAreRefused) {
  provenance_.set_train_digest("cc");
  EXPECT_EQ(Other().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Other().status().message()),
              AllOf(HasSubstr("the training data are others than those that the run began with "
                              "(digest aa, now cc), though the experiment names the same"),
                    HasSubstr("--set data.file, data.dir or data.vocabulary")));
  Experiment spelt = OfText({});
  spelt.mutable_data()->set_file(std::filesystem::absolute(spelt.data().file()).string());
  EXPECT_FALSE(OtherData(OfText({}), spelt, manifest_, provenance_).ok()) << "the same file";
  provenance_.set_train_digest("aa");
  provenance_.set_test_digest("dd");
  EXPECT_THAT(std::string(Other().status().message()),
              HasSubstr("the test data are others than those that the run began with"));
}

TEST_F(OtherDataTest, OthersByNameAreTold) {
  provenance_.set_train_digest("cc");
  EXPECT_THAT(*Other({"data.verify=false",
                      "data.corpus={vocabulary: 300, train_tokens: 99, "
                      "test_tokens: 99}"}),
              HasSubstr("the training data are others than those that the run began with"));
  provenance_.set_train_digest("aa");
  provenance_.set_test_digest("dd");
  EXPECT_EQ(*Other({"data.test_limit=1"}), "") << "fewer of the same";
}

}  // namespace
}  // namespace thinwire
