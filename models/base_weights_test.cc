#include "models/base_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cost.h"
#include "models/frozen.h"
#include "models/lora.h"
#include "models/parts.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

Model SmallLlama(int64_t width = 64) {
  ModelOptions options = *OptionsOf("llama");
  options.input = {1, 8};
  options.classes = 50;
  options.layers = 2;
  options.heads = 2;
  options.width = width;
  options.hidden = 128;
  return *NamedModel(options);
}

Model Adapted(Model model) {
  LoraSpec spec;
  spec.modules = {"q_proj"};
  return *WithAdapters(std::move(model), spec);
}

std::string ErrorOf(Model model, WeightFormat format = WeightFormat::kNF4) {
  const absl::Status status = WithBase(std::move(model), format).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(WithBaseTest, HoldsFrozenLinearWeightsBetweenTheEndsInFewBits) {
  const Model model = *WithBase(Adapted(SmallLlama()), WeightFormat::kNF4);
  int held = 0;
  for (const BlockSpec& block : model.blocks) {
    const bool is_end = &block == &model.blocks.front() || &block == &model.blocks.back();
    for (const ParameterSpec& parameter : Parameters(block)) {
      const bool is_linear = parameter.shape.rank() == 2 && !IsOfAdapter(parameter.name);
      const bool is_held = parameter.format == WeightFormat::kNF4;
      EXPECT_EQ(is_held, is_linear && !is_end) << parameter.name;
      EXPECT_TRUE(!is_held || parameter.role == ParameterSpec::Role::kFrozen) << parameter.name;
      held += is_held;
    }
  }
  EXPECT_EQ(held, 2 * 4);  // queries, keys and values; their output; gate and up; down
}

TEST(WithBaseTest, LeavesWhatIsTrained) {
  const Model model = *WithBase(*WithFrozen(SmallLlama(), {"layers.0"}), WeightFormat::kInt8);
  for (const ParameterSpec& parameter : Parameters(model.blocks[2])) {
    EXPECT_EQ(parameter.format, WeightFormat::kFP32) << parameter.name;
  }
}

TEST(WithBaseTest, RefusesWhatHasNoSuchWeightOrDoesNotFit) {
  EXPECT_THAT(ErrorOf(SmallLlama()), HasSubstr("no frozen linear layer between"));
  EXPECT_THAT(ErrorOf(*WithFrozen(SmallLlama(), {"embedding"})), HasSubstr("want lora, or freeze"));
  EXPECT_THAT(ErrorOf(Adapted(SmallLlama(48))),
              HasSubstr("has 48 input features, want a multiple of 64 with weights of nf4"));
  EXPECT_TRUE(WithBase(Adapted(SmallLlama(48)), WeightFormat::kInt8).ok());
  EXPECT_THAT(
      ErrorOf(*WithFrozen(*DividedIntoParts(SmallLlama(), 2), {"layers"}), WeightFormat::kBF16),
      HasSubstr("want whole layers"));
}

TEST(ValueBytesTest, AreThoseOfCodesAndScales) {
  ParameterSpec weight;
  weight.shape = {10, 128};
  EXPECT_EQ(ValueBytes(weight), 4 * 1280);
  weight.format = WeightFormat::kBF16;
  EXPECT_EQ(ValueBytes(weight), 2 * 1280);
  weight.format = WeightFormat::kInt8;
  EXPECT_EQ(ValueBytes(weight), 1280 + 4 * 10);
  weight.format = WeightFormat::kNF4;
  EXPECT_EQ(ValueBytes(weight), 640 + 4 * 20);
}

TEST(SegmentCostsTest, CountTheBaseAsItIsHeldAndOneExpandedWeight) {
  const Model plain = Adapted(SmallLlama());
  const SegmentCost whole = SegmentCosts(plain, {}).front();
  const SegmentCost held = SegmentCosts(*WithBase(plain, WeightFormat::kNF4), {}).front();
  EXPECT_EQ(held.fixed_parameters, whole.fixed_parameters);
  const int64_t linear = 2 * (3 * 64 * 64 + 64 * 64 + 3 * 64 * 128);
  EXPECT_EQ(whole.fixed_bytes - held.fixed_bytes, 4 * linear - (linear / 2 + linear / 16));
  EXPECT_EQ(held.expanded_elements, 2 * 64 * 128);
  EXPECT_EQ(TrainingBytes(whole, {}) - TrainingBytes(held, {}),
            whole.fixed_bytes - held.fixed_bytes - 4 * held.expanded_elements);
}

}  // namespace
}  // namespace thinwire
