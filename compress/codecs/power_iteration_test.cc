#include "compress/codecs/power_iteration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "compress/checks/distortion.h"
#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

CodecSpec SpecOfRank(uint32_t rank) {
  CodecSpec spec;
  spec.kind = CodecKind::kLowRank;
  spec.rank = rank;
  return spec;
}

// Returns a + b.
Tensor Sum(const Tensor& a, const Tensor& b) {
  std::vector<float> sums;
  for (int64_t i = 0; i < a.elements(); ++i) sums.push_back(a.floats()[i] + b.floats()[i]);
  return TensorOf(a.shape(), sums);
}

// Returns what the sum of some tensors becomes, from the factor in *carry, and leaves the next.
Tensor Reduced(const PowerIteration& steps, const std::vector<Tensor>& all,
               std::shared_ptr<const Carry>* carry) {
  std::vector<float> largest(all.size());
  Tensor p = *steps.Project(all[0], carry->get(), &largest[0]);
  for (size_t i = 1; i < all.size(); ++i) {
    p = Sum(p, *steps.Project(all[i], carry->get(), &largest[i]));
  }
  steps.Orthonormalise(p);
  Tensor q = *steps.Reproject(all[0], largest[0], p);
  for (size_t i = 1; i < all.size(); ++i) q = Sum(q, *steps.Reproject(all[i], largest[i], p));
  Tensor reduced = *Tensor::Allocate(CpuDevice(), DType::kF32, all[0].shape());
  EXPECT_TRUE(steps.Multiply(p, q, reduced).ok());
  *carry = PowerIteration::CarryOf(q);
  return reduced;
}

TEST(PowerIterationTest, OfOneTensorItsStepsGiveTheCodecsPayloads) {
  const Shape shape = {41, 13};
  const CodecSpec spec = SpecOfRank(3);
  const PowerIteration steps(spec, shape, CpuCodecKernels());
  const auto codec = CodecOf(spec);
  std::shared_ptr<const Carry> carry, of_codec;
  for (uint64_t message = 1; message < 4; ++message) {
    const Tensor x = TensorOf(shape, RandomValues(shape.elements(), message));
    std::vector<uint8_t> payload(codec->MaxPayloadBytes(shape, DType::kF32));
    MessageContext context;
    context.carry = of_codec.get();
    context.next_carry = &of_codec;
    ASSERT_EQ(*codec->Encode(x, context, absl::MakeSpan(payload)), payload.size());
    float largest = 0;
    const Tensor p = *steps.Project(x, carry.get(), &largest);
    steps.Orthonormalise(p);
    const Tensor q = *steps.Reproject(x, largest, p);
    std::vector<uint8_t> factors(p.bytes() + q.bytes());
    std::memcpy(factors.data(), p.data(), p.bytes());
    std::memcpy(factors.data() + p.bytes(), q.data(), q.bytes());
    EXPECT_THAT(factors, ElementsAreArray(payload));
    carry = PowerIteration::CarryOf(q);
    EXPECT_EQ(DataOfPart(carry, "warm_start"), DataOfPart(of_codec, "warm_start"));
  }
}

TEST(PowerIterationTest, TheFactorsOfASumAreSums) {
  const Shape shape = {60, 20};
  const PowerIteration steps(SpecOfRank(4), shape, CpuCodecKernels());
  std::vector<Tensor> all;
  for (uint64_t i = 0; i < 3; ++i) {
    all.push_back(TensorOf(shape, RandomValues(shape.elements(), i)));
  }
  const std::vector<Tensor> whole = {Sum(Sum(all[0], all[1]), all[2])};
  std::shared_ptr<const Carry> carry, of_whole;
  for (int message = 0; message < 3; ++message) {
    const Tensor reduced = Reduced(steps, all, &carry);
    const Tensor expected = Reduced(steps, whole, &of_whole);
    EXPECT_LT(MeasureDistortion(expected, reduced, CpuCodecKernels())->relative_error, 1e-5);
  }
}

// Tests the largest rank that is accepted, of a sum that has fewer.
TEST(PowerIterationTest, ASumOfLowerRankIsExact) {
  const Shape shape = {30, 9};
  const std::vector<float> a = RandomValues(60, 1), b = RandomValues(18, 2);
  std::vector<float> first(270), second(270);
  for (int i = 0; i < 270; ++i) {
    first[i] = a[i / 9] * b[i % 9];
    second[i] = a[30 + i / 9] * b[9 + i % 9];
  }
  const std::vector<Tensor> all = {TensorOf(shape, first), TensorOf(shape, second)};
  const PowerIteration steps(SpecOfRank(8), shape, CpuCodecKernels());
  std::shared_ptr<const Carry> carry;
  for (int message = 0; message < 2; ++message) {
    const Tensor reduced = Reduced(steps, all, &carry);
    EXPECT_LT(MeasureDistortion(Sum(all[0], all[1]), reduced, CpuCodecKernels())->relative_error,
              1e-6);
  }
}

TEST(PowerIterationTest, TinyAndLargeTensorsKeepTheirRank) {
  const Shape shape = {40, 12};
  for (const float scale : {1e-36f, 1e-30f, 1e25f, 1e35f}) {
    const std::vector<float> a = RandomValues(40, 1), b = RandomValues(12, 2);
    std::vector<float> values(480);
    for (int i = 0; i < 480; ++i) values[i] = a[i / 12] * b[i % 12] * scale;
    const Tensor x = TensorOf(shape, values);
    const PowerIteration steps(SpecOfRank(1), shape, CpuCodecKernels());
    std::shared_ptr<const Carry> carry;
    const Tensor reduced = Reduced(steps, {x, x}, &carry);
    for (float& value : values) value *= 2;
    EXPECT_LT(
        MeasureDistortion(TensorOf(shape, values), reduced, CpuCodecKernels())->relative_error,
        1e-5)
        << scale;
  }
}

TEST(PowerIterationTest, RefusesWhatHasNoFactors) {
  const Shape shape = {20, 10};
  const auto refusal = [&](const CodecSpec& spec, float value) {
    std::vector<float> values(200, 3e38f);
    values[77] = value;
    float largest = 0;
    return PowerIteration(spec, shape, CpuCodecKernels())
        .Project(TensorOf(shape, values), nullptr, &largest)
        .status();
  };
  const absl::Status nonfinite = refusal(SpecOfRank(2), NAN);
  EXPECT_EQ(nonfinite.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(nonfinite.message()), HasSubstr("low_rank: element 77"));
  EXPECT_THAT(std::string(refusal(SpecOfRank(2), 3e38f).message()), HasSubstr("factor of"));
  EXPECT_THAT(std::string(refusal(SpecOfRank(10), 1).message()),
              HasSubstr("rank 10 of a matrix of 20 x 10"));
}

}  // namespace
}  // namespace thinwire
