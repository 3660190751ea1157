#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/resolve.h"
#include "config/resolve_testing.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kAdapted[] = R"(
model: {name: llama, layers: 2, heads: 4, width: 64, hidden: 128}
data: {name: shakespeare, context: 16, batch_size: 6}
lora: {rank: 4}
pipeline: {cuts: [embedding, layers.0]}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)";

constexpr char kTrained[] = R"(
model: {name: llama, layers: 2, heads: 4, width: 64, hidden: 128}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [embedding, layers.0]}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)";

// Returns the number of parameters that are not held in fp32.
int HeldInFewBits(const Experiment& e) {
  int held = 0;
  const Partition partition = *PartitionFrom(e);
  for (const BlockSpec& block : partition.model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      held += parameter.format != WeightFormat::kFP32;
    }
  }
  return held;
}

TEST(BaseConfigTest, IsAbsentByDefault) {
  const Experiment e = With({}, kAdapted);
  EXPECT_FALSE(e.has_base());
  EXPECT_EQ(HeldInFewBits(e), 0);
  EXPECT_EQ(HeldInFewBits(With({"base.weights=fp32"}, kAdapted)), 0);
}

TEST(BaseConfigTest, HoldsFrozenWeightsInFewBits) {
  for (const char* weights : {"bf16", "int8", "nf4"}) {
    const Experiment e = With({std::string("base.weights=") + weights}, kAdapted);
    EXPECT_EQ(e.base().weights(), weights);
    EXPECT_EQ(HeldInFewBits(e), 2 * 4) << weights;
    EXPECT_EQ(std::string(Name(*BaseFrom(e))), weights);
  }
  const Experiment frozen = With({"freeze=layers.0", "base={weights: nf4}"}, kTrained);
  EXPECT_EQ(HeldInFewBits(frozen), 4);
}

TEST(BaseConfigTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorWith({"base.weights=int4"}, kAdapted),
              HasSubstr("base.weights: weights: unknown \"int4\""));
  EXPECT_THAT(ErrorWith({"base={}"}, kAdapted),
              HasSubstr("base.weights: is required, one of fp32"));
  EXPECT_THAT(ErrorWith({"base.weights=nf4"}, kTrained),
              HasSubstr("base: weights: nf4, but model llama has no frozen linear layer"));
  EXPECT_THAT(ErrorWith({"model.width=48", "base.weights=nf4"}, kAdapted),
              HasSubstr("48 input features, want a multiple of 64"));
  EXPECT_THAT(ErrorWith({"freeze=layers.0", "tensor.parts=2", "base.weights=bf16"}, kTrained),
              HasSubstr("base: layer "));
}

}  // namespace
}  // namespace thinwire
