// Tests pipeline.stash and pipeline.received.
#include "config/stash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/resolve_testing.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(const std::string& stash) {
  return ErrorWith({"pipeline.stash={" + stash + "}"});
}

TEST(StashConfigTest, NothingIsStashedByDefault) {
  EXPECT_FALSE(StashFrom(With({}))->has_value());
  EXPECT_FALSE(StashFrom(With({"pipeline.stash={codec: none}"}))->has_value());
  EXPECT_TRUE(KeepsPayloads(With({})));
  EXPECT_FALSE(KeepsPayloads(With({"pipeline.received=decoded"})));
  EXPECT_THAT(ErrorWith({"pipeline.received=both"}), HasSubstr("pipeline.received: "));
}

TEST(StashConfigTest, CodecsHaveTheDefaultsOfCuts) {
  const Experiment e = With({"pipeline.stash={codec: uniform, bits: 4, rounding: stochastic}"});
  EXPECT_EQ(e.pipeline().stash().scope(), "tensor");
  const DirectionSpec does = StashFrom(e)->value();
  EXPECT_EQ(does.codec.bits, 4u);
  EXPECT_EQ(does.codec.rounding, Rounding::kStochastic);
  EXPECT_EQ(StashFrom(With({"pipeline.stash={lossless: entropy}"}))->value().codec.lossless,
            Lossless::kEntropy);
}

TEST(StashConfigTest, AnotherCodecForgetsTheParametersOfTheFile) {
  const std::string file = std::string(kLeast) + "pipeline: {stash: {codec: uniform, bits: 4}}\n";
  EXPECT_EQ(With({"pipeline.stash.codec=fp8"}, file).pipeline().stash().codec(), "fp8");
}

TEST(StashConfigTest, WhatRemembersOrCannotBeIsRefusedByName) {
  EXPECT_THAT(RefusalOf("codec: topk, ratio: 0.1, feedback: ef"),
              HasSubstr("pipeline.stash.feedback: ef, want none: a stash remembers nothing"));
  EXPECT_THAT(RefusalOf("codec: low_rank, rank: 2"),
              HasSubstr("pipeline.stash.codec: low_rank, want one without state"));
  EXPECT_THAT(RefusalOf("codec: ecsq, rotation: principal, rotation_every: 2"),
              HasSubstr("pipeline.stash.rotation: principal, want none"));
  EXPECT_THAT(RefusalOf("codec: uniform, outliers: 2"),
              HasSubstr("pipeline.stash.outliers: 2, want 0"));
  EXPECT_THAT(RefusalOf("codec: uniform, scope: channel"),
              HasSubstr("pipeline.stash.scope: channel, want tensor, sample, token or group"));
  EXPECT_THAT(RefusalOf("codec: uniform, level: {by_epoch: {2: 4}}"),
              HasSubstr("pipeline.stash.level: given, want none"));
  EXPECT_THAT(RefusalOf("codec: uniform, bits: 9"), HasSubstr("pipeline.stash: "));
  EXPECT_THAT(RefusalOf("codec: uniform, epilogue_only: true"),
              HasSubstr("pipeline.stash.epilogue_only: true"));
  EXPECT_THAT(ErrorWith({"pipeline.stash={codec: uniform}", "tensor.parts=2"}, R"(
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 8, batch_size: 4}
optimizer: {name: adamw, lr: 0.001}
epochs: 1
)"),
              HasSubstr("pipeline.stash: with tensor.parts 2, want none"));
}

TEST(StashConfigTest, BitsAreThoseOfTheLongestPayload) {
  const auto bits = [](const std::vector<std::string>& overrides) {
    const Experiment e = With(overrides);
    return *KeptBitsOf(e, *PartitionFrom(e));
  };
  const std::string cuts = "pipeline.cuts=[stem, layer1]";
  EXPECT_FALSE(bits({cuts}).stash.has_value());
  EXPECT_NEAR(*bits({cuts, "pipeline.stash={codec: uniform, bits: 4}"}).stash, 4, 0.1);
  EXPECT_EQ(*bits({cuts, "pipeline.stash={lossless: entropy}"}).stash, 32);
  const auto payload = [&](const std::string& activations) {
    return bits({cuts, "compression.activations={" + activations + "}"}).payloads[1];
  };
  EXPECT_NEAR(*payload("codec: uniform, bits: 4"), 4, 0.1);
  EXPECT_FALSE(payload("codec: none").has_value());
  EXPECT_FALSE(payload("codec: uniform, bits: 4, feedback: aq_sgd").has_value());
  EXPECT_TRUE(payload("codec: topk, ratio: 0.1, feedback: ef").has_value());
  EXPECT_TRUE(payload("codec: low_rank, rank: 2").has_value());
  EXPECT_FALSE(bits({cuts, "compression.activations.codec=uniform", "compression.warmup_steps=3"})
                   .payloads[1]
                   .has_value());
}

}  // namespace
}  // namespace thinwire
