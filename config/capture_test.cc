#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// 12 steps: 31 samples, 4 batches an epoch.
constexpr char kCut[] = R"(
model: {name: resnet8}
data: {name: digits, batch_size: 10, limit: 31}
pipeline: {cuts: [layer1]}
optimizer: {lr: 0.1}
epochs: 3
)";

absl::Status With(const std::vector<std::string>& overrides) {
  return ParseExperiment(kCut, "f.yaml", overrides).status();
}

TEST(CaptureTest, AStepBehindTheRunsLastIsRefused) {
  EXPECT_TRUE(With({"capture.steps=[1, 12]"}).ok());
  EXPECT_EQ(With({"capture.steps=[1, 13]"}).message(),
            "--set capture.steps=[1, 13]: capture.steps: 13, want at most 12, the run's last step");
  EXPECT_TRUE(With({"capture.steps=1149", "data.limit=0"}).ok());
  EXPECT_THAT(std::string(With({"capture.steps=1150", "data.limit=0"}).message()),
              HasSubstr("want at most 1149"));
}

// 1024 x 1024 x 2^24 floats at the cut, 2^20 samples: 2^66 bytes, which is 0 in 64 bits.
constexpr char kWide[] = R"(
model:
  name: custom
  blocks:
    - name: wide
      layers:
        - {kind: conv, name: a, out: 1, kernel: 1, padding: 64}
        - {kind: conv, name: b, out: 1, kernel: 1, padding: 64}
        - {kind: conv, name: c, out: 1, kernel: 1, padding: 64}
        - {kind: conv, name: d, out: 1, kernel: 1, padding: 64}
        - {kind: conv, name: e, out: 1, kernel: 1, padding: 64}
        - {kind: conv, name: f, out: 1, kernel: 1, padding: 64}
        - {kind: conv, name: g, out: 1, kernel: 1, padding: 64}
        - {kind: conv, name: h, out: 16777216, kernel: 1, padding: 60}
    - name: head
      layers: [{kind: global_avg_pool}, {kind: linear, name: fc, out: 10}]
data: {name: digits, batch_size: 1048576}
pipeline: {cuts: [wide]}
optimizer: {lr: 0.1}
epochs: 1
)";

TEST(CaptureTest, MoreBytesThanNumbersHoldAreBeyondTheLimit) {
  EXPECT_TRUE(ParseExperiment(kWide, "f.yaml", {}).ok());
  EXPECT_THAT(std::string(ParseExperiment(kWide, "f.yaml", {"capture={steps: 1, what: gradients}"})
                              .status()
                              .message()),
              HasSubstr("want at most capture.limit_bytes, 1073741824"));
}

}  // namespace
}  // namespace thinwire
