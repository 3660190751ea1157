// Trains a small network with bottlenecks at its cuts, whose codes a codec compresses further.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/pipeline_testing.h"

namespace thinwire {
namespace {

constexpr int kTestSamples = 500;

constexpr char kExperiment[] = R"(
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 64, augment: none, test_limit: 500}
pipeline: {cuts: [layer1, layer2, layer3], stages: 2, threads: 1}
compression: {activations: {codec: uniform}, gradients: {codec: uniform}}
optimizer: {lr: 0.05, momentum: 0.9}
lr_schedule: {name: cosine}
)";

Trained Train(const std::vector<std::string>& overrides) {
  return TrainPipeline(kExperiment, overrides, /*tcp=*/true);
}

class BottleneckTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BottleneckTest, ASmallNetworkLearns) {
  const Trained outcome = Train({absl::StrCat("compression.bottleneck=", GetParam()), "epochs=4"});
  EXPECT_GT(outcome.compressed_correct, 0.9 * kTestSamples);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BottleneckTest,
                         ::testing::Values("{kind: linear, width: 4}",
                                           "{kind: layer_norm, width: 4}",
                                           "{kind: maxout, group: 4}",
                                           "{kind: residual, width: 4}"));

// There is no weight decay, so only gradients change the layers.
TEST(BottleneckLayersTest, EncodersAndDecodersAreTrained) {
  const auto after = [](const std::string& epochs) {
    return Train({"compression.bottleneck.width=4", "data.limit=256", "epochs=" + epochs});
  };
  const Trained one = after("1"), two = after("2");
  for (const char* cut : {"layer1", "layer2", "layer3"}) {
    for (const char* layer : {"encode", "decode"}) {
      const std::string name = absl::StrCat("bottleneck.", cut, ".", layer, ".weight");
      ASSERT_EQ(one.parameters.count(name), 1u) << name;
      EXPECT_NE(one.parameters.at(name), two.parameters.at(name)) << name;
    }
  }
}

TEST(BottleneckLayersTest, OnlyTheCodeCrosses) {
  const Trained outcome = Train({"compression.bottleneck.width=4", "data.limit=256", "epochs=1"});
  const BoundaryReport& sent = outcome.boundaries.at("layer1/activation");
  constexpr uint64_t kSamples = 256, kCode = 8 * 8 * 4;
  EXPECT_EQ(sent.raw_bytes(), kSamples * kCode * sizeof(float));
}

}  // namespace
}  // namespace thinwire
