#include "compress/spec_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/sample_specs_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  return std::string(ParseCodec(text).status().message());
}

TEST(ParseCodecTest, InvertsToString) {
  for (const char* text :
       {"none", "fp16", "fp8(format=e5m2)",
        "uniform(bits=4, range=min_max, scope=group, group=64, rounding=stochastic, zero=on_grid)",
        "uniform(bits=4, range=max_abs, scope=tensor, rounding=nearest, rotation=hadamard, "
        "rotation_block=256)",
        "topk(ratio=0.1, scope=sample, values=fp32)",
        "topk(k=3, scope=token, values=uniform, bits=4, range=max_abs, rounding=nearest, group=32)",
        "topk(indices=shared, values=fp16)",
        "topk(ratio=0.1, scope=sample, values=fp32, "
        "support=received_nonzero, lossless=zstd)",
        "randomk(ratio=0.25, scope=tensor, unbiased=true, values=fp32)",
        "threshold(threshold=2, relative_to=rms, values=fp32)", "blockwise8(block=2048)",
        "low_rank(rank=4, per_sample=true)"}) {
    const auto spec = ParseCodec(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->ToString(), text);
  }
}

TEST(ParseCodecTest, InvertsTheTextOfEverySample) {
  for (const CodecSpec& spec : SampleSpecsOfAll()) {
    const auto parsed = ParseCodec(spec.ToString());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, spec) << spec.ToString();
  }
}

TEST(ParseCodecTest, InvertsEveryRatio) {
  for (const double ratio : {0.1, 0.12345678, 1.0 / 3, 1e-9, 0.07 + 1e-16}) {
    CodecSpec spec = DefaultSpec(CodecKind::kTopK);
    spec.ratio = ratio;
    EXPECT_EQ(ParseCodec(spec.ToString())->ratio, ratio) << spec.ToString();
  }
  EXPECT_EQ(ParseCodec("topk(ratio=0.12345678)")->ToString(),
            "topk(ratio=0.12345678, scope=sample, values=fp32)");
}

TEST(ParseCodecTest, WhatIsLeftOutHasItsDefault) {
  EXPECT_EQ(ParseCodec("topk(ratio=0.1)")->ToString(),
            "topk(ratio=0.1, scope=sample, values=fp32)");
  EXPECT_EQ(ParseCodec(" blockwise8 ")->ToString(), "blockwise8(block=4096)");
  EXPECT_EQ(ParseCodec("uniform(rotation=hadamard)")->rotation_block, 1024u);
}

TEST(ParseCodecTest, ErrorsNameWhatTheyMet) {
  EXPECT_THAT(ErrorOf("topc(ratio=1)"), HasSubstr("nearest is \"topk\""));
  EXPECT_THAT(ErrorOf("topk(ration=0.1)"), HasSubstr("nearest is \"ratio\""));
  EXPECT_THAT(ErrorOf("topk(ratio=0.1, ratio=0.2)"), HasSubstr("\"ratio\" comes twice"));
  EXPECT_THAT(ErrorOf("topk(ratio=x)"), HasSubstr("ratio: met \"x\", want a number"));
  EXPECT_THAT(ErrorOf("topk(ratio=0.1"), HasSubstr("want a ) at the end"));
  EXPECT_THAT(ErrorOf("topk(ratio)"), HasSubstr("want name=value"));
  EXPECT_THAT(ErrorOf("topk(ratio=2)"), HasSubstr("ratio is 2"));
}

}  // namespace
}  // namespace thinwire
