// The CPU computes in fp64. With fp32 exponentials and sums the last three or four bits differ. A
// gradient of nearly zero, of a label that is nearly certain, loses more.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

struct Loss : LossSums {
  Floats dlogits;
};

enum class Gradients { kNone, kApart, kInPlace };

struct Size {
  int64_t n, classes;
  int64_t row = classes;  // elements of a row
};

Loss LossOf(Side* side, DType type, const Size& size, const Floats& logits, Gradients gradients) {
  const int64_t n = size.n;
  const Shape shape = {n, size.row};
  Device* const host = side->device()->host();
  const Tensor labels = *Tensor::Allocate(host, DType::kI32, {n});
  const Tensor sums = *Tensor::Allocate(host, DType::kI32, {sizeof(LossSums) / 4});
  for (int64_t i = 0; i < n; ++i) {
    const auto label = static_cast<int32_t>(i * 7 % size.classes);
    static_cast<int32_t*>(labels.data())[i] = i % 5 == 3 ? -1 : label;  // some are ignored
  }
  CrossEntropy a;
  a.logits = side->Of(type, shape, logits);
  a.classes = size.classes;
  if (gradients == Gradients::kApart) a.dlogits = side->Unwritten(type, shape);
  if (gradients == Gradients::kInPlace) a.dlogits = a.logits;
  a.labels = static_cast<const int32_t*>(labels.data());
  a.batch_size = n + 3;
  Loss loss;
  EXPECT_TRUE((*side)->SoftmaxCrossEntropy(a, static_cast<LossSums*>(sums.data())).ok());
  EXPECT_TRUE(side->device()->Finish().ok());
  static_cast<LossSums&>(loss) = *static_cast<const LossSums*>(sums.data());
  if (gradients != Gradients::kNone) loss.dlogits = side->Read(a.dlogits);
  return loss;
}

class CrossEntropyTest : public testing::TestWithParam<std::tuple<DType, Size>> {
 protected:
  void ExpectTwin(const Floats& logits) {
    const auto [type, size] = GetParam();
    Side cpu = CpuSide(), device = DeviceSide(), misaligned = DeviceSide(1);
    const Loss want = LossOf(&cpu, type, size, logits, Gradients::kApart);
    for (Side* side : {&device, &misaligned}) {
      const Loss got = LossOf(side, type, size, logits, Gradients::kApart);
      EXPECT_NEAR(got.loss, want.loss, 2e-6 * static_cast<double>(size.n));
      EXPECT_EQ(got.correct, want.correct);
      EXPECT_EQ(got.counted, want.counted);
      ExpectNear({{"dlogits", want.dlogits}}, {{"dlogits", got.dlogits}},
                 Rounded(type, 0x1p-19, 2e-6 / static_cast<double>(size.n + 3)));
    }
  }
};

TEST_P(CrossEntropyTest, IsTheCpus) {
  const Size size = std::get<1>(GetParam());
  ExpectTwin(RandomFloats(size.n * size.row, 1, 5, 3));
}

TEST_P(CrossEntropyTest, TheFirstOfEqualLogitsIsTheOneThatCounts) {
  const Size size = std::get<1>(GetParam());
  Floats logits = RandomFloats(size.n * size.row, 1);
  for (float& v : logits) v = std::round(v);
  ExpectTwin(logits);
}

TEST_P(CrossEntropyTest, WithoutGradientsTheLossIsTheSame) {
  const auto [type, size] = GetParam();
  const Floats logits = RandomFloats(size.n * size.row, 1);
  Side side = DeviceSide();
  const Loss with = LossOf(&side, type, size, logits, Gradients::kApart);
  const Loss without = LossOf(&side, type, size, logits, Gradients::kNone);
  EXPECT_EQ(with.loss, without.loss);
  EXPECT_EQ(with.correct, without.correct);
}

TEST_P(CrossEntropyTest, TheGradientMayReplaceTheLogits) {
  const auto [type, size] = GetParam();
  const Floats logits = RandomFloats(size.n * size.row, 1);
  Side side = DeviceSide();
  const Loss apart = LossOf(&side, type, size, logits, Gradients::kApart);
  const Loss in_place = LossOf(&side, type, size, logits, Gradients::kInPlace);
  EXPECT_EQ(apart.loss, in_place.loss);
  EXPECT_EQ(apart.correct, in_place.correct);
  ExpectNear({{"dlogits", apart.dlogits}}, {{"dlogits", in_place.dlogits}}, kSameBits);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CrossEntropyTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(Size{1, 1}, Size{9, 3}, Size{300, 10},
                                                          Size{17, 100}, Size{5, 1500},
                                                          Size{7, 10, 64}, Size{3, 1501, 1536},
                                                          Size{2, 20001, 20032})));

TEST(CrossEntropyNumericsTest, LargeLogitsDoNotOverflow) {
  Side side = DeviceSide();
  const Loss loss = LossOf(&side, DType::kF32, {1, 3}, {1000, 3e38f, -3e38f}, Gradients::kApart);
  EXPECT_EQ(loss.loss, 3e38f - 1000.0f);
  EXPECT_EQ(loss.dlogits, (Floats{-0.25f, 0.25f, 0}));
}

TEST(CrossEntropyNumericsTest, WhatIsMinusInfiniteHasNoShare) {
  Side side = DeviceSide();
  Floats logits(1200, -INFINITY);
  logits[0] = logits[7] = 2;
  const Loss loss = LossOf(&side, DType::kF32, {1, 1200}, logits, Gradients::kApart);
  EXPECT_NEAR(loss.loss, std::log(2.0), 1e-6);
  EXPECT_EQ(loss.dlogits[1], 0);
  EXPECT_NEAR(loss.dlogits[7], 0.125, 1e-6);
}

TEST(CrossEntropyNumericsTest, ANaNIsInTheLoss) {
  for (const size_t at : {0, 5, 1100}) {
    Side side = DeviceSide();
    Floats logits(1200, 1);
    logits[at] = NAN;
    const Loss loss = LossOf(&side, DType::kF32, {1, 1200}, logits, Gradients::kApart);
    EXPECT_TRUE(std::isnan(loss.loss)) << at;
    EXPECT_EQ(loss.correct, 1) << "class 0 is the first that none exceeds";
  }
}

TEST(CrossEntropyNumericsTest, NoRowsAreNoLoss) {
  Side side = DeviceSide();
  const Loss loss = LossOf(&side, DType::kF32, {0, 10}, {}, Gradients::kApart);
  EXPECT_EQ(loss.loss, 0);
  EXPECT_EQ(loss.correct, 0);
}

}  // namespace
}  // namespace thinwire
