#include "models/frozen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cost.h"
#include "models/tied_weight.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model SmallGpt2() {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 8};
  options.classes = 50;
  options.layers = 3;
  options.heads = 2;
  options.width = 16;
  return *NamedModel(options);
}

Model Frozen(const std::vector<std::string>& names) { return *WithFrozen(SmallGpt2(), names); }

std::string ErrorOf(const std::vector<std::string>& names) {
  const absl::Status status = WithFrozen(SmallGpt2(), names).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::vector<std::string> TrainedBlocks(const Model& model) {
  std::vector<std::string> names;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      const bool is_new = names.empty() || names.back() != block.name;
      if (parameter.is_trained() && is_new) names.push_back(block.name);
    }
  }
  return names;
}

TEST(WithFrozenTest, NamesBlocksOrGroupsOfThem) {
  EXPECT_THAT(TrainedBlocks(Frozen({})), ElementsAre("embedding", "h.0", "h.1", "h.2", "head"));
  EXPECT_THAT(TrainedBlocks(Frozen({"h.1"})), ElementsAre("embedding", "h.0", "h.2", "head"));
  EXPECT_THAT(TrainedBlocks(Frozen({"h", "embedding"})), ElementsAre("head"));
}

TEST(WithFrozenTest, AFrozenEmbeddingFreezesTheWeightThatIsTiedToIt) {
  EXPECT_TRUE(FindTiedWeight(Frozen({"h.0"})).has_value());
  const Model model = Frozen({"embedding"});
  EXPECT_FALSE(FindTiedWeight(model).has_value());
  std::vector<std::string> trained;
  for (const ParameterSpec& parameter : Parameters(model.blocks.back())) {
    if (parameter.is_trained()) trained.push_back(parameter.name);
  }
  EXPECT_THAT(trained, ElementsAre("transformer.ln_f.weight", "transformer.ln_f.bias"));
}

TEST(WithFrozenTest, RefusesWhatItCannotFreeze) {
  EXPECT_THAT(ErrorOf({"h.7"}), HasSubstr("has no block 'h.7': did you mean h"));
  EXPECT_THAT(ErrorOf({"h.7"}), HasSubstr("There are embedding, h, h.0, h.1, h.2, head"));
  EXPECT_THAT(ErrorOf({"head"}), HasSubstr("lm_head is the weight of the embedding: want "
                                           "'embedding' frozen too"));
  EXPECT_THAT(ErrorOf({"embedding", "h", "head"}), HasSubstr("leave nothing to train"));
}

TEST(WithFrozenTest, RunningStatisticsAreNotFrozen) {
  ModelOptions options = *OptionsOf("resnet8");
  options.input = {1, 8, 8, 1};
  const Model model = *WithFrozen(*NamedModel(options), {"layer1"});
  std::vector<ParameterSpec::Role> roles;
  for (const ParameterSpec& parameter : Parameters(model.blocks[1])) {
    if (roles.empty() || roles.back() != parameter.role) roles.push_back(parameter.role);
  }
  EXPECT_EQ(roles.front(), ParameterSpec::Role::kFrozen);
  EXPECT_THAT(roles, testing::Contains(ParameterSpec::Role::kStatistics));
  EXPECT_THAT(roles, testing::Not(testing::Contains(ParameterSpec::Role::kTrained)));
}

std::vector<bool> Gradients(const std::vector<std::string>& frozen) {
  const Model model = Frozen(frozen);
  std::vector<bool> cross;
  const std::vector<Cut> cuts = *NamedCuts(model, {"embedding", "h.0", "h.1", "h.2"});
  for (const Cut& cut : cuts) {
    cross.push_back(HasGradients(model, cut));
  }
  return cross;
}

TEST(HasGradientsTest, OnlyCutsBehindATrainedBlockHaveThem) {
  EXPECT_THAT(Gradients({}), ElementsAre(true, true, true, true));
  EXPECT_THAT(Gradients({"h.0"}), ElementsAre(true, true, true, true));
  EXPECT_THAT(Gradients({"embedding", "h.0", "h.2"}), ElementsAre(false, false, true, true));
  EXPECT_THAT(Gradients({"embedding", "h"}), ElementsAre(false, false, false, false));
}

TEST(BackwardFlopsTest, AreThoseOfWhatIsWanted) {
  const Model model = Frozen({"embedding", "h.0", "h.2"});
  EXPECT_EQ(BackwardFlops(model, 1), 0);
  EXPECT_EQ(BackwardFlops(model, 2), 2 * ForwardFlops(model.blocks[2]));
  const double attention = AttentionFlops(model.blocks[3]);
  EXPECT_EQ(BackwardFlops(model, 3), ForwardFlops(model.blocks[3]) + attention);
  EXPECT_EQ(WeightFlops(model.blocks[3]), 0);
}

TEST(SegmentCostsTest, FrozenBlocksKeepLessAndHaveNoBuffers) {
  const Model all = SmallGpt2(), some = Frozen({"embedding", "h.0", "h.2"});
  const std::vector<Cut> cuts = *NamedCuts(all, {"embedding", "h.0", "h.1", "h.2"});
  const std::vector<SegmentCost> whole = SegmentCosts(all, cuts), frozen = SegmentCosts(some, cuts);
  for (const int i : {0, 1, 3}) {
    EXPECT_EQ(frozen[i].parameters, 0) << i;
    EXPECT_EQ(frozen[i].fixed_parameters, whole[i].parameters) << i;
    EXPECT_LT(frozen[i].kept_elements, whole[i].kept_elements) << i;
    EXPECT_EQ(frozen[i].waiting_elements, 0) << i;
  }
  EXPECT_EQ(frozen[1].kept_elements, 0);
  EXPECT_EQ(frozen[2].kept_elements, whole[2].kept_elements);
  EXPECT_EQ(TrainingBytes(frozen[1], TrainingMemory()), 4 * whole[1].parameters);
}

TEST(BalancedCutsTest, PutMoreBlocksWhereTheyAreFrozen) {
  const auto cut = [](const Model& model) { return (*BalancedCuts(model, 1, 0)).front().block; };
  EXPECT_GT(cut(SmallGpt2()), cut(Frozen({"h.1", "h.2"})));
}

}  // namespace
}  // namespace thinwire
