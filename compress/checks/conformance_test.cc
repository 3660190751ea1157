// Tests that every built-in codec keeps the promises to which users' codecs are held, and that the
// checks notice a codec that does not.
#include "compress/checks/conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compress/codecs/plugin.h"
#include "compress/cpu/kernels.h"
#include "compress/sample_specs_testing.h"
#include "compress/spec_text.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Returns the names of the checks that fail, with their errors.
std::map<std::string, std::string> Failures(const CodecSpec& spec) {
  std::map<std::string, std::string> failures;
  const auto checks = ConformanceChecks(spec, CpuCodecKernels());
  if (!checks.ok()) return {{"checks", std::string(checks.status().message())}};
  for (const ConformanceCheck& check : *checks) {
    const auto seen = check.run();
    if (!seen.ok()) failures[check.name] = std::string(seen.status().message());
  }
  return failures;
}

constexpr const char* kBuiltIn[] = {

    "none",
    "fp16",
    "bf16",
    "fp8(format=e4m3)",
    "fp8(format=e5m2)",
    "uniform(bits=8)",
    "uniform(bits=4, rounding=stochastic, scope=sample)",
    "uniform(bits=2, zero=on_grid)",
    "uniform(bits=4, range=max_abs, scope=token)",
    "uniform(bits=4, range=fixed_point, scope=channel)",
    "uniform(bits=4, scope=group, group=64, lossless=zstd)",
    "uniform(bits=8, scope=sample, lossless=entropy)",
    "fp8(lossless=entropy)",
    "uniform(bits=4, rotation=hadamard, rotation_block=64)",
    "uniform(bits=4, support=received_nonzero)",
    "topk(ratio=0.1, scope=sample)",
    "topk(ratio=0.1, scope=tensor, values=fp16, lossless=zstd)",
    "topk(ratio=0.3, scope=token, values=uniform, bits=4)",
    "topk(indices=shared)",
    "topk(k=5, pad=exact_k)",
    "topk(ratio=0.2, support=received_nonzero)",
    "randomk(ratio=0.2)",
    "randomk(ratio=0.2, unbiased=true, scope=tensor)",
    "threshold(threshold=0.5)",
    "threshold(threshold=1, relative_to=rms, values=bf16)",
    "blockwise8(block=64)",
    "low_rank(rank=4)",
    "low_rank(rank=2, per_sample=true)",
    "ecsq(step=0.5)",
    "ecsq(step=2, scope=token, rounding=dither)",
    "ecsq(step=0.01, rounding=stochastic, lossless=none)",
    "ecsq(rounding=dead_zone, reconstruction=center, support=received_nonzero)",
    "ecsq(step=2, rounding=nearest_nonzero)",
    "ecsq(step=0.5, rotation=principal)",
    "ecsq(step=2, scope=token, rounding=dither, rotation=principal, lossless=none)"};

class EveryCodec : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryCodec, Conforms) {
  const auto spec = ParseCodec(GetParam());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Failures(*spec), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, EveryCodec, ::testing::ValuesIn(kBuiltIn),
                         [](const auto& info) { return std::to_string(info.index); });

class EverySample : public ::testing::TestWithParam<CodecSpec> {};

TEST_P(EverySample, Conforms) { EXPECT_THAT(Failures(GetParam()), IsEmpty()); }

INSTANTIATE_TEST_SUITE_P(BuiltIn, EverySample, ::testing::ValuesIn(SampleSpecsOfAll()),
                         [](const auto& info) { return std::to_string(info.index); });

std::map<std::string, std::string> FailuresOfFake(const std::string& mischief) {
  CodecSpec spec;
  spec.kind = CodecKind::kPlugin;
  spec.plugin = *LoadPlugin("compress/codecs/libfake.so", "{\"mischief\": \"" + mischief + "\"}");
  return Failures(spec);
}

TEST(ConformanceTest, AnHonestPluginPasses) { EXPECT_THAT(FailuresOfFake("none"), IsEmpty()); }

TEST(ConformanceTest, AnEncoderAboveItsBoundIsNoCodec) {
  EXPECT_THAT(FailuresOfFake("longer_than_bound"),
              UnorderedElementsAre(Pair("checks", HasSubstr("its bound is"))));
}

TEST(ConformanceTest, ADecoderThatLeavesAnElementIsNoticed) {
  EXPECT_THAT(FailuresOfFake("leaves_the_last"),
              ::testing::Contains(
                  Pair("decode overwrites every element", HasSubstr("what lay there before"))));
}

TEST(ConformanceTest, ADecoderThatTakesAnyLengthIsNoticed) {
  EXPECT_THAT(FailuresOfFake("trusts_lengths"),
              UnorderedElementsAre(Pair("every cut of a payload and every trailing byte is refused",
                                        HasSubstr("accepted cut to 0"))));
}

TEST(ConformanceTest, AnEncoderThatHidesNanIsNoticed) {
  EXPECT_THAT(FailuresOfFake("hides_nan"),
              UnorderedElementsAre(
                  Pair("NaN and infinity are refused or carried", HasSubstr("arrives as 0"))));
}

TEST(ConformanceTest, ACodecThatTakesNoShapeSaysWhy) {
  EXPECT_THAT(Failures(*ParseCodec("low_rank(rank=1000)")),
              UnorderedElementsAre(Pair("checks", HasSubstr("rank 1000 of a matrix"))));
}

}  // namespace
}  // namespace thinwire
