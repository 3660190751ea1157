#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "config/fields.h"
#include "config/synonyms.h"
#include "gtest/gtest.h"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

std::string In(const std::string& section, const std::string& name) {
  return section.empty() ? Suggestion(*Experiment::descriptor(), name)
                         : Suggestion(*FieldAt(section)->message_type(), name);
}

TEST(SuggestionTest, EverySynonymStandsForAFieldThatIsThere) {
  std::set<std::pair<std::string, std::string>> rows;
  for (const Synonyms& synonyms : kSynonyms) {
    const auto* field = FieldAt(synonyms.path);
    ASSERT_NE(field, nullptr) << synonyms.path;
    const auto* section = field->containing_type();
    for (const std::string& name : std::vector<std::string>(absl::StrSplit(synonyms.names, ' '))) {
      SCOPED_TRACE(absl::StrCat(name, " of ", synonyms.path));
      EXPECT_TRUE(rows.emplace(name, section->full_name()).second)
          << "stands for two fields of one section";
      EXPECT_EQ(section->FindFieldByName(name), nullptr)
          << "is the name of a field of that section";
      EXPECT_EQ(Suggestion(*section, name), field->name());
    }
  }
}

TEST(SuggestionTest, ASlipOfThePenIsTheNearestField) {
  EXPECT_EQ(In("", "epoch"), "epochs");
  EXPECT_EQ(In("", "optimiser"), "optimizer");
  EXPECT_EQ(In("optimizer", "momentm"), "momentum");
  EXPECT_EQ(In("data", "batchSize"), "batch_size");
  EXPECT_EQ(In("lr_schedule", "T-Max"), "t_max");
}

TEST(SuggestionTest, ANameOfOtherSystemsIsTheFieldThatTheyMean) {
  EXPECT_EQ(In("optimizer", "learning_rate"), "lr");
  EXPECT_EQ(In("optimizer", "learningRate"), "lr");
  EXPECT_EQ(In("data", "batch"), "batch_size");
  EXPECT_EQ(In("model", "num_layers"), "layers");
  EXPECT_EQ(In("model", "n_embd"), "width");
  EXPECT_EQ(In("optimizer", "eps"), "epsilon");
  EXPECT_EQ(In("compression.gradients", "group_size"), "group");
  EXPECT_EQ(In("model.blocks.layers", "kernel_size"), "kernel");
}

TEST(SuggestionTest, AFieldOfAnotherSectionIsNamedFromTheRoot) {
  EXPECT_EQ(In("", "lr"), "optimizer.lr");
  EXPECT_EQ(In("", "learning_rate"), "optimizer.lr");
  EXPECT_EQ(In("", "batch_size"), "data.batch_size");
  EXPECT_EQ(In("", "dropout"), "model.dropout");
  EXPECT_EQ(In("", "codec"), "compression.activations.codec");
  EXPECT_EQ(In("optimizer", "epochs"), "epochs");
  EXPECT_EQ(In("", "save_total_limit"), "checkpoint.keep");
}

TEST(PathOfTest, IsThatOfAFieldOrOfWhatOthersCallIt) {
  EXPECT_EQ(PathOf("epochs"), "epochs");
  EXPECT_EQ(PathOf("lr"), "optimizer.lr");
  EXPECT_EQ(PathOf("batch-size"), "data.batch_size");
  EXPECT_EQ(PathOf("learning_rate"), "optimizer.lr");
  EXPECT_EQ(PathOf("nonsense"), "");
}

TEST(SuggestionTest, NoPathLeadsThroughAList) {
  EXPECT_EQ(In("", "kernel_size").find('.'), std::string::npos);
}

TEST(SuggestionTest, WhatNobodyMeansIsTheNearestField) { EXPECT_EQ(In("optimizer", "xlrx"), "lr"); }

}  // namespace
}  // namespace thinwire
