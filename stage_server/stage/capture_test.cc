#include "stage_server/stage/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/safetensors.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MessageKey Key(uint64_t step, Direction direction = DIRECTION_ACTIVATION, uint32_t cut = 0,
               uint32_t microbatch = 0) {
  return {PHASE_TRAIN, direction, cut, 1, step, microbatch};
}

Tensor Of(std::vector<float> values) {
  Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, {1, static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), x.floats().begin());
  return x;
}

std::string Taken(Capture* capture, uint64_t step) {
  std::string file;
  const absl::Status status = capture->Take(step, 5, [&](std::string_view piece) {
    file += piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return file;
}

std::vector<std::string> Names(const std::string& file) {
  std::vector<std::string> names;
  const auto parsed = ParseSafetensors(file);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  for (const StoredTensor& tensor : parsed->tensors) names.push_back(tensor.name);
  return names;
}

TEST(CaptureTest, KeepsTheStepsCutsAndDirectionsWanted) {
  Capture capture({/*steps=*/{2, 4}, /*cuts=*/{1}, /*activations=*/true, /*gradients=*/false});
  for (uint64_t step = 1; step <= 4; ++step) {
    for (uint32_t cut : {0, 1}) {
      for (Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
        ASSERT_TRUE(capture.Offer(Key(step, direction, cut), "layer2", Of({1})).ok());
      }
    }
  }
  EXPECT_THAT(Names(Taken(&capture, 1)), IsEmpty());
  EXPECT_THAT(Names(Taken(&capture, 2)), ElementsAre("layer2/activation/step2/microbatch0"));
  EXPECT_THAT(Names(Taken(&capture, 4)), ElementsAre("layer2/activation/step4/microbatch0"));
}

TEST(CaptureTest, EvaluationIsNotCaptured) {
  Capture capture({{1}, {0}, true, true});
  MessageKey key = Key(1);
  key.phase = PHASE_EVALUATE_COMPRESSED;
  ASSERT_TRUE(capture.Offer(key, "layer1", Of({1})).ok());
  EXPECT_THAT(Names(Taken(&capture, 1)), IsEmpty());
}

TEST(CaptureTest, WhatIsKeptIsACopyWithTypeAndShape) {
  Capture capture({{1}, {0}, true, true});
  Tensor x = Of({1.5f, -2.0f});
  ASSERT_TRUE(capture.Offer(Key(1, DIRECTION_GRADIENT), "layer1", x).ok());
  x.floats()[0] = 7;
  const std::string file = Taken(&capture, 1);
  const StoredTensor tensor = ParseSafetensors(file)->tensors[0];
  EXPECT_EQ(tensor.dtype, "F32");
  EXPECT_THAT(tensor.shape, ElementsAre(1, 2));
  float values[2];
  std::memcpy(values, tensor.data.data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(1.5f, -2.0f));
}

TEST(CaptureTest, MicrobatchesStandInOrderAndAStepIsTakenOnce) {
  Capture capture({{1}, {0}, true, true});
  for (uint32_t microbatch : {1, 0}) {
    ASSERT_TRUE(capture.Offer(Key(1, DIRECTION_ACTIVATION, 0, microbatch), "layer1", Of({1})).ok());
  }
  EXPECT_THAT(Names(Taken(&capture, 1)), ElementsAre("layer1/activation/step1/microbatch0",
                                                     "layer1/activation/step1/microbatch1"));
  EXPECT_THAT(Names(Taken(&capture, 1)), IsEmpty());
}

}  // namespace
}  // namespace thinwire
