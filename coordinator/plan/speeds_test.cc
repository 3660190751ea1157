#include "coordinator/plan/speeds.h"

#include <limits>

#include "config/experiment.h"
#include "config/specs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

Model SomeModel() {
  const auto experiment = ParseExperiment(
      "{model: {name: resnet8}, data: {name: digits}, optimizer: {lr: 0.1}, epochs: 1}", "test",
      {});
  return *ModelFrom(*experiment);
}

TEST(BlocksAtTest, BackwardTakesTwiceTheForwardFlops) {
  const Model model = SomeModel();
  const auto blocks = BlocksAt(model, /*gflops=*/10);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  ASSERT_EQ(blocks->size(), model.blocks.size());
  for (size_t i = 0; i < blocks->size(); ++i) {
    EXPECT_DOUBLE_EQ((*blocks)[i].forward, ForwardFlops(model.blocks[i]) / 10e9);
    EXPECT_DOUBLE_EQ((*blocks)[i].backward, 2 * (*blocks)[i].forward);
    EXPECT_EQ((*blocks)[i].update, 0);
  }
}

TEST(LeaveOutPassesTest, WhatWasMeasuredIsLessWithoutThoseOfEachLayer) {
  const Model model = SomeModel();
  std::vector<BlockSeconds> given(model.blocks.size(), {10, 20, 1}), measured = given;
  LeaveOutPasses(model, /*layer_seconds=*/2, /*samples_of_pass=*/0, &given);
  LeaveOutPasses(model, /*layer_seconds=*/2, /*samples_of_pass=*/8, &measured);
  const auto layers = static_cast<double>(CountLayers(model.blocks[1]));
  EXPECT_GT(layers, 5);  // of a residual block
  EXPECT_EQ(given[1].forward, 10);
  EXPECT_DOUBLE_EQ(measured[1].forward, 10 - 2 * layers / 8);
  EXPECT_DOUBLE_EQ(measured[1].backward, 20 - 4 * layers / 8);
  EXPECT_EQ(measured[1].update, 1);
  LeaveOutPasses(model, /*layer_seconds=*/1e6, /*samples_of_pass=*/8, &given);
  EXPECT_DOUBLE_EQ(given[1].forward, 1);  // a tenth is left
}

TEST(CodingAtTest, TakesSecondsPerByteAndSaysNothingOfPayloads) {
  const auto speed = CodingAt(/*gigabytes_per_second=*/2);
  ASSERT_TRUE(speed.ok()) << speed.status();
  EXPECT_DOUBLE_EQ(speed->encode_seconds_per_byte, 0.5e-9);
  EXPECT_DOUBLE_EQ(speed->decode_seconds_per_byte, 0.5e-9);
  EXPECT_EQ(speed->payload_per_byte, 0);
}

TEST(SpeedsTest, WhatIsOutOfRangeIsRefusedByTheFlagsName) {
  const Model model = SomeModel();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kNaN, kInfinity, -kInfinity, -1.0}) {
    EXPECT_THAT(std::string(BlocksAt(model, value).status().message()),
                ::testing::HasSubstr("--gflops: "));
    EXPECT_THAT(std::string(CodingAt(value).status().message()),
                ::testing::HasSubstr("--codec_gbps: "));
  }
  EXPECT_EQ(BlocksAt(model, 0).status().message(), "--gflops: 0, want 1e-06 to 1e+12");
  EXPECT_EQ(BlocksAt(model, kNaN).status().message(), "--gflops: nan, want 1e-06 to 1e+12");
  EXPECT_EQ(CodingAt(0).status().message(), "--codec_gbps: 0, want 1e-06 to 1e+12");
}

}  // namespace
}  // namespace thinwire
