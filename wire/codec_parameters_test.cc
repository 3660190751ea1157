#include "wire/codec_parameters.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

CodecSpec Uniform() {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.scope = Scope::kGroup;
  spec.group = 64;
  spec.bits = 3;
  spec.range = Range::kMinMax;
  spec.rounding = Rounding::kStochastic;
  spec.zero = Zero::kOnGrid;
  return spec;
}

CodecSpec TopK() {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.scope = Scope::kToken;
  spec.ratio = 0.1;
  spec.count = Count::kPaper1;
  spec.pad = Pad::kExactK;
  spec.values = Values::kF16;
  return spec;
}

TEST(CodecParametersTest, EveryKindComesBackAsItWas) {
  CodecSpec none, fp16, bf16;
  fp16.kind = CodecKind::kFp16;
  bf16.kind = CodecKind::kBf16;
  for (const CodecSpec& spec : {none, fp16, bf16, Uniform(), TopK()}) {
    const absl::StatusOr<CodecSpec> back = FromParameters(ToParameters(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == spec) << spec.ToString();
  }
}

TEST(CodecParametersTest, ACastTravelsInTwoBytes) {
  CodecSpec spec;
  spec.kind = CodecKind::kFp16;
  EXPECT_EQ(ToParameters(spec).ByteSizeLong(), 2u);
}

TEST(CodecParametersTest, AParameterOfAnotherKindDoesNotTravel) {
  CodecSpec uniform = Uniform();
  uniform.ratio = 0.5;
  EXPECT_EQ(ToParameters(uniform).ratio(), 0);
}

TEST(CodecParametersTest, UnknownNumbersAreNamed) {
  CodecParameters parameters = ToParameters(Uniform());
  parameters.set_rounding(7);
  EXPECT_EQ(FromParameters(parameters).status(),
            absl::InvalidArgumentError("codec.rounding is 7, want a known number"));
}

}  // namespace
}  // namespace thinwire
