// Both sides compute in fp64 and round once. Exponentials may differ by a unit in fp64's last
// place, so results by one in the last place of what they are rounded to.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

struct Loss {
  double loss = -1;
  int64_t correct = -1;
  Floats dlogits;
};

enum class Gradients { kNone, kApart, kInPlace };

Loss LossOf(Side* side, DType type, int64_t n, int64_t classes, const Floats& logits,
            Gradients gradients) {
  std::vector<int32_t> labels(n);
  for (int64_t i = 0; i < n; ++i) labels[i] = static_cast<int32_t>(i * 7 % classes);
  CrossEntropy a;
  a.logits = side->Of(type, Shape({n, classes}), logits);
  if (gradients == Gradients::kApart) a.dlogits = side->Unwritten(type, Shape({n, classes}));
  if (gradients == Gradients::kInPlace) a.dlogits = a.logits;
  a.labels = labels.data();
  a.batch_size = n + 3;
  Loss loss;
  EXPECT_TRUE((*side)->SoftmaxCrossEntropy(a, &loss.loss, &loss.correct).ok());
  if (gradients != Gradients::kNone) loss.dlogits = side->Read(a.dlogits);
  return loss;
}

struct Size {
  int64_t n, classes;
};

class CrossEntropyTest : public testing::TestWithParam<std::tuple<DType, Size>> {
 protected:
  void ExpectTwin(const Floats& logits) {
    const auto [type, size] = GetParam();
    const auto [n, classes] = size;
    Side cpu = CpuSide(), device = DeviceSide(), misaligned = DeviceSide(1);
    const Loss want = LossOf(&cpu, type, n, classes, logits, Gradients::kApart);
    for (Side* side : {&device, &misaligned}) {
      const Loss got = LossOf(side, type, n, classes, logits, Gradients::kApart);
      EXPECT_NEAR(got.loss, want.loss, 1e-12 * (1 + std::abs(want.loss)));
      EXPECT_EQ(got.correct, want.correct);
      ExpectNear({{"dlogits", want.dlogits}}, {{"dlogits", got.dlogits}},
                 Rounded(type, 0x1p-23, 1e-15));
    }
  }
};

TEST_P(CrossEntropyTest, IsTheCpus) {
  const auto [type, size] = GetParam();
  const auto [n, classes] = size;
  ExpectTwin(RandomFloats(n * classes, 1, 5, 3));
}

TEST_P(CrossEntropyTest, TheFirstOfEqualLogitsIsTheOneThatCounts) {
  const auto [type, size] = GetParam();
  const auto [n, classes] = size;
  Floats logits = RandomFloats(n * classes, 1);
  for (float& v : logits) v = std::round(v);
  ExpectTwin(logits);
}

TEST_P(CrossEntropyTest, WithoutGradientsTheLossIsTheSame) {
  const auto [type, size] = GetParam();
  const auto [n, classes] = size;
  const Floats logits = RandomFloats(n * classes, 1);
  Side side = DeviceSide();
  const Loss with = LossOf(&side, type, n, classes, logits, Gradients::kApart);
  const Loss without = LossOf(&side, type, n, classes, logits, Gradients::kNone);
  EXPECT_EQ(with.loss, without.loss);
  EXPECT_EQ(with.correct, without.correct);
}

TEST_P(CrossEntropyTest, TheGradientMayReplaceTheLogits) {
  const auto [type, size] = GetParam();
  const auto [n, classes] = size;
  const Floats logits = RandomFloats(n * classes, 1);
  Side side = DeviceSide();
  const Loss apart = LossOf(&side, type, n, classes, logits, Gradients::kApart);
  const Loss in_place = LossOf(&side, type, n, classes, logits, Gradients::kInPlace);
  EXPECT_EQ(apart.loss, in_place.loss);
  EXPECT_EQ(apart.correct, in_place.correct);
  ExpectNear({{"dlogits", apart.dlogits}}, {{"dlogits", in_place.dlogits}}, kSameBits);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CrossEntropyTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(Size{1, 1}, Size{9, 3}, Size{300, 10},
                                                          Size{17, 100}, Size{5, 1500})));

TEST(CrossEntropyNumericsTest, LargeLogitsDoNotOverflow) {
  Side side = DeviceSide();
  const Loss loss = LossOf(&side, DType::kF32, 1, 3, {1000, 3e38f, -3e38f}, Gradients::kApart);
  EXPECT_EQ(loss.loss, 3e38f - 1000.0f);
  EXPECT_EQ(loss.dlogits, (Floats{-0.25f, 0.25f, 0}));
}

TEST(CrossEntropyNumericsTest, NoRowsAreNoLoss) {
  Side side = DeviceSide();
  const Loss loss = LossOf(&side, DType::kF32, 0, 10, {}, Gradients::kApart);
  EXPECT_EQ(loss.loss, 0);
  EXPECT_EQ(loss.correct, 0);
}

}  // namespace
}  // namespace thinwire
