#include "config/codec_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/codecs/plugin.h"
#include "compress/spec_text.h"
#include "config/direction.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class ConfigOfTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ConfigOfTest, ResolvesToTheSameCodec) {
  const CodecSpec spec = *ParseCodec(GetParam());
  auto config = ConfigOf(spec);
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::Status resolved = ResolveDirection("x", /*gradient=*/true, &*config);
  ASSERT_TRUE(resolved.ok()) << resolved;
  const auto back = CodecFrom(*config);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->ToString(), spec.ToString());  // all that matters to the codec
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, ConfigOfTest,
    ::testing::Values("none", "fp16", "bf16(support=received_nonzero)", "fp8(format=e5m2)",
                      "uniform(bits=4, zero=on_grid)", "uniform(bits=3, range=max_abs)",
                      "uniform(bits=2, scope=group, group=64, rounding=stochastic)",
                      "uniform(bits=4, rotation=hadamard, rotation_block=256)",
                      "topk(ratio=0.1, scope=sample, values=fp32)",
                      "topk(k=7, scope=tensor, pad=exact_k, values=bf16)",
                      "topk(ratio=0.2, scope=sample, count=paper1, values=fp32)",
                      "topk(ratio=0.1, scope=sample, values=uniform, bits=4, group=32)",
                      "topk(ratio=0.3, scope=sample, values=fp32, support=received_nonzero)",
                      "topk(indices=shared, values=fp16)",
                      "randomk(ratio=0.1, scope=sample, unbiased=true, values=fp32)",
                      "threshold(threshold=0.5, relative_to=rms, values=fp32)",
                      "blockwise8(block=256)", "low_rank(rank=4, per_sample=true)",
                      "uniform(bits=8, lossless=zstd)", "ecsq(step=0.5, scope=token)",
                      "ecsq(rate=1.5, rounding=dither)",
                      "uniform(bits=4, scope=token, outliers=4, first_position=exact)",
                      "ecsq(step=1, rotation=principal, rotation_every=30)"));

TEST(ConfigOfTest, APluginIsALoadedLibrary) {
  const auto spec = ParseCodecOrLibrary("compress/codecs/libfake.so", "{}");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto config = ConfigOf(*spec);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(CodecFrom(*config)->plugin, spec->plugin);
  CodecSpec unknown = *spec;
  unknown.plugin = 1;
  EXPECT_THAT(std::string(ConfigOf(unknown).status().message()), HasSubstr("was not loaded"));
}

}  // namespace
}  // namespace thinwire
