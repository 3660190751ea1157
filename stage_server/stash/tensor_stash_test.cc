#include "stage_server/stash/tensor_stash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compress/cpu/kernels.h"
#include "stage_server/stash/stash_testing.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const Shape kShape = {4, 64, 128};
const Pass kPass(Mode::kTrain, /*step=*/7, /*first_sample=*/8);

TestedStash StashOnCpu(const CodecSpec& codec, OnNonfinite on_nonfinite = OnNonfinite::kError) {
  return TestedStash(CpuDevice(), CpuCodecKernels(), codec, on_nonfinite);
}

double RelativeError(const std::vector<float>& x, const std::vector<float>& y) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += x[i] * x[i];
  }
  return std::sqrt(difference / norm);
}

TEST(TensorStashTest, FourBitsTakeASixthOfTheMemory) {
  TestedStash tested = StashOnCpu(CodesOf(4));
  const Tensor x = tested.Numbers(kShape);
  size_t bytes = 0;
  const auto back = tested.RoundTrip({{x, Needed::kValues}}, kPass, &bytes);
  EXPECT_LE(6 * bytes, x.bytes());
  const double error = RelativeError(tested.Values(x), back[0]);
  EXPECT_GT(error, 0.01);
  EXPECT_LT(error, 0.2);
  EXPECT_EQ(tested.counts.all().train.raw_bytes, x.bytes());
  EXPECT_EQ(tested.counts.all().train.payload_bytes, bytes);
}

TEST(TensorStashTest, WhatHasToBeExactStaysAsItIs) {
  TestedStash tested = StashOnCpu(CodesOf(2));
  const Tensor exact = tested.Numbers(kShape), small = tested.Numbers({2, 100});
  const Tensor ids = *Tensor::Allocate(CpuDevice(), DType::kI32, {4, 1024});
  const auto stashed =
      *tested.stash->Put("block", kPass, {{exact, Needed::kExact}, {small}, {ids}, {Tensor()}});
  EXPECT_EQ(stashed->bytes(), exact.bytes() + small.bytes() + ids.bytes());
  const auto back = *tested.stash->Take("block", stashed.get());
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(back[0].tensor.data(), exact.data());
  EXPECT_EQ(back[1].tensor.data(), small.data());
  EXPECT_EQ(back[2].tensor.data(), ids.data());
  EXPECT_TRUE(back[3].tensor.empty());
  EXPECT_EQ(tested.counts.all().train.messages, 0u);
}

TEST(TensorStashTest, MemoryThatStandsTwiceIsPutAwayOnce) {
  TestedStash tested = StashOnCpu(CodesOf(4));
  const Tensor x = tested.Numbers(kShape);
  const Tensor reshaped(x.buffer(), x.dtype(), {256, 128});
  const auto stashed = *tested.stash->Put("block", kPass, {{x}, {reshaped}});
  EXPECT_LE(6 * stashed->bytes(), x.bytes());
  const auto back = *tested.stash->Take("block", stashed.get());
  EXPECT_EQ(back[0].tensor.data(), back[1].tensor.data());
  EXPECT_EQ(back[0].tensor.shape(), x.shape());
  EXPECT_EQ(back[1].tensor.shape(), reshaped.shape());
  EXPECT_EQ(tested.counts.all().train.messages, 1u);
}

TEST(TensorStashTest, SignsTakeABit) {
  TestedStash tested = StashOnCpu(CodesOf(4));
  const Tensor y = tested.Numbers(kShape, /*rectified=*/true);
  size_t bytes = 0;
  const std::vector<float> before = tested.Values(y);
  const auto back = tested.RoundTrip({{y, Needed::kSigns}}, kPass, &bytes);
  EXPECT_EQ(bytes, y.bytes() / 32);
  for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(back[0][i] > 0, before[i] > 0) << i;
}

TEST(TensorStashTest, ValuesWhoseSignsAreNeededKeepThem) {
  for (const uint32_t bits : {1u, 2u, 4u}) {
    TestedStash tested = StashOnCpu(CodesOf(bits));
    const Tensor y = tested.Numbers(kShape, /*rectified=*/true);
    size_t bytes = 0;
    const std::vector<float> before = tested.Values(y);
    const auto back = tested.RoundTrip({{y, Needed::kSigns}, {y, Needed::kValues}}, kPass, &bytes);
    for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(back[0][i] > 0, before[i] > 0) << i;
    EXPECT_THAT(back[1], ElementsAreArray(back[0]));
    EXPECT_LT(RelativeError(before, back[1]), bits == 4 ? 0.1 : 0.7);
    // A bit for each element, and codes with their ranges for every second one.
    EXPECT_NEAR(static_cast<double>(bytes), y.elements() / 8.0 * (1 + (bits + 1) / 2.0),
                0.02 * y.elements());
  }
}

TEST(TensorStashTest, AllZerosComeBack) {
  TestedStash tested = StashOnCpu(CodesOf(4));
  const Tensor y = tested.Of(std::vector<float>(2048, 0.0f), {2, 1024});
  const std::vector<float> zeros(2048, 0.0f);
  EXPECT_THAT(tested.RoundTrip({{y, Needed::kSigns}}, kPass)[0], ElementsAreArray(zeros));
  EXPECT_THAT(tested.RoundTrip({{y, Needed::kSigns}, {y}}, kPass)[1], ElementsAreArray(zeros));
}

TEST(TensorStashTest, RoundingFollowsBlockStepSampleAndPosition) {
  TestedStash one = StashOnCpu(CodesOf(4)), other = StashOnCpu(CodesOf(4));
  const Tensor x = one.Numbers(kShape);
  const auto values = [&x](TestedStash* tested, const Pass& pass) {
    return tested->RoundTrip({{x}}, pass)[0];
  };
  const std::vector<float> at = values(&one, kPass);
  one.Numbers(kShape);
  EXPECT_EQ(values(&one, kPass), at);
  EXPECT_EQ(values(&other, kPass), at);
  EXPECT_NE(values(&one, Pass(Mode::kTrain, 8, 8)), at);
  EXPECT_NE(values(&one, Pass(Mode::kTrain, 7, 4)), at);
  Pass slice = kPass;
  slice.first_position = 16;
  EXPECT_NE(values(&one, slice), at);
  const auto stashed = *one.stash->Put("another", kPass, {{x}});
  EXPECT_NE(one.Values((*one.stash->Take("another", stashed.get()))[0].tensor), at);
}

TEST(TensorStashTest, StochasticCodesAreRightInTheMean) {
  TestedStash tested = StashOnCpu(CodesOf(2));
  const Tensor x = tested.Numbers({1, 2048});
  const std::vector<float> exact = tested.Values(x);
  std::vector<float> mean(exact.size());
  constexpr int kSteps = 400;
  for (int step = 0; step < kSteps; ++step) {
    const auto back = tested.RoundTrip({{x}}, Pass(Mode::kTrain, step));
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += back[0][i] / kSteps;
  }
  EXPECT_LT(RelativeError(exact, mean), 0.05);  // of one step it is 0.5
}

TEST(TensorStashTest, WhatIsNotFiniteIsRefusedOrPasses) {
  TestedStash strict = StashOnCpu(CodesOf(4));
  std::vector<float> values(2048, 1.0f);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  const absl::Status refused =
      strict.stash->Put("h.3", kPass, {{strict.Of(values, {2, 1024})}}).status();
  EXPECT_TRUE(absl::IsOutOfRange(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("stash of block h.3"));
  TestedStash lax = StashOnCpu(CodesOf(4), OnNonfinite::kPass);
  EXPECT_TRUE(std::isnan(lax.RoundTrip({{lax.Of(values, {2, 1024})}}, kPass)[0][5]));
}

TEST(TensorStashTest, LosslessCodesKeepAllBits) {
  CodecSpec codec;
  codec.lossless = Lossless::kEntropy;
  TestedStash tested = StashOnCpu(codec);
  const Tensor x = tested.Numbers(kShape), y = tested.Numbers(kShape, true, 2);
  const std::vector<float> of_x = tested.Values(x), of_y = tested.Values(y);
  size_t bytes = 0;
  const auto back =
      tested.RoundTrip({{x}, {y, Needed::kSigns}, {y, Needed::kValues}}, kPass, &bytes);
  EXPECT_EQ(back[0], of_x);
  EXPECT_EQ(back[1], of_y);
  EXPECT_EQ(back[2], of_y);
  EXPECT_LT(bytes, x.bytes() + y.bytes());
}

TEST(TensorStashTest, ErrorsAreMeasuredWhereTheyAreDue) {
  TestedStash tested = StashOnCpu(CodesOf(4));
  tested.options.error_every = 5;
  tested.stash = *TensorStash::New(tested.options);
  const Tensor x = tested.Numbers(kShape);
  tested.RoundTrip({{x}}, Pass(Mode::kTrain, 4));
  EXPECT_EQ(tested.counts.all().errors.messages, 0u);
  const auto back = tested.RoundTrip({{x}}, Pass(Mode::kTrain, 5));
  EXPECT_EQ(tested.counts.all().errors.messages, 1u);
  EXPECT_NEAR(tested.counts.all().errors.relative_error, RelativeError(tested.Values(x), back[0]),
              1e-6);
}

}  // namespace
}  // namespace thinwire
