// Both compute in fp64 and round once, so gradients have the same bits; sums are added in another
// order.
#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

struct Errors : LossSums {
  Floats doutputs;
};

enum class Gradients { kNone, kApart, kInPlace };

Errors ErrorsOf(Side* side, DType type, const Shape& shape, const Floats& outputs,
                Gradients gradients) {
  Device* const host = side->device()->host();
  const Tensor scores = *Tensor::Allocate(host, DType::kI32, {shape[0]});
  const Tensor sums = *Tensor::Allocate(host, DType::kI32, {sizeof(LossSums) / 4});
  for (int64_t i = 0; i < shape[0]; ++i) {
    const auto score = static_cast<int32_t>(i * 7919 % 5001);
    static_cast<int32_t*>(scores.data())[i] = i % 5 == 3 ? -1 : score;  // some are ignored
  }
  SquaredErrors a;
  a.outputs = side->Of(type, shape, outputs);
  if (gradients == Gradients::kApart) a.doutputs = side->Unwritten(type, shape);
  if (gradients == Gradients::kInPlace) a.doutputs = a.outputs;
  a.scores = static_cast<const int32_t*>(scores.data());
  a.unit = 0x1p-10;
  a.batch_size = shape[0] + 3;
  Errors errors;
  EXPECT_TRUE((*side)->MeanSquaredError(a, static_cast<LossSums*>(sums.data())).ok());
  EXPECT_TRUE(side->device()->Finish().ok());
  static_cast<LossSums&>(errors) = *static_cast<const LossSums*>(sums.data());
  if (gradients != Gradients::kNone) errors.doutputs = side->Read(a.doutputs);
  return errors;
}

class MeanSquaredErrorTest : public testing::TestWithParam<std::tuple<DType, Shape>> {};

TEST_P(MeanSquaredErrorTest, IsTheCpus) {
  const auto [type, shape] = GetParam();
  const Floats outputs = RandomFloats(shape.elements(), 1, 2.5f, 2);
  Side cpu = CpuSide(), device = DeviceSide(), misaligned = DeviceSide(1);
  const Errors want = ErrorsOf(&cpu, type, shape, outputs, Gradients::kApart);
  for (Side* side : {&device, &misaligned}) {
    for (const Gradients gradients : {Gradients::kNone, Gradients::kApart, Gradients::kInPlace}) {
      const Errors got = ErrorsOf(side, type, shape, outputs, gradients);
      EXPECT_NEAR(got.loss, want.loss, 1e-12 * (1 + want.loss));
      EXPECT_EQ(got.correct, 0);
      EXPECT_EQ(got.counted, want.counted);
      if (gradients == Gradients::kNone) continue;
      ExpectNear({{"doutputs", want.doutputs}}, {{"doutputs", got.doutputs}}, kSameBits);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MeanSquaredErrorTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(Shape{0, 1}, Shape{1, 1}, Shape{9, 1},
                                                          Shape{7, 64}, Shape{300, 3})));

}  // namespace
}  // namespace thinwire
