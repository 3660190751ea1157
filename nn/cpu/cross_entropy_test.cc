#include <gtest/gtest.h>

#include <cmath>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

using Labels = std::vector<int32_t>;

Labels SomeLabels(int64_t n, int64_t classes) {
  Labels labels(n);
  for (int64_t i = 0; i < n; ++i) labels[i] = static_cast<int32_t>(i * 7 % classes);
  return labels;
}

struct Loss : LossSums {
  Floats dlogits;

  Loss(int threads, TestTensor* logits, TestTensor* dlogits_tensor, const Labels& labels,
       int64_t batch_size) {
    CrossEntropy a;
    a.logits = logits->view();
    a.classes = a.logits.dims[1];
    if (dlogits_tensor != nullptr) a.dlogits = dlogits_tensor->view();
    a.labels = labels.data();
    a.batch_size = batch_size;
    EXPECT_TRUE(NewCpuOps(threads)->SoftmaxCrossEntropy(a, this).ok());
    if (dlogits_tensor != nullptr) dlogits = dlogits_tensor->Read();
  }
};

class CrossEntropyTest : public testing::TestWithParam<DType> {};

TEST_P(CrossEntropyTest, IsWhatTheFormulaSays) {
  for (int64_t classes : {1, 2, 10, 65, 1003}) {
    constexpr int64_t kRows = 23;
    const Labels labels = SomeLabels(kRows, classes);
    TestTensor logits(GetParam(), {kRows, classes}, RandomFloats(kRows * classes, 1, 8));
    TestTensor dlogits(GetParam(), {kRows, classes});
    const Loss loss(2, &logits, &dlogits, labels, 30);
    const Floats x = logits.Read();
    double want = 0;
    int64_t correct = 0;
    Floats gradient(kRows * classes);
    for (int64_t i = 0; i < kRows; ++i) {
      const float* const row = &x[i * classes];
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(double{row[c]});
      want += std::log(sum) - double{row[labels[i]]};
      correct += std::max_element(row, row + classes) - row == labels[i];
      for (int64_t c = 0; c < classes; ++c) {
        gradient[i * classes + c] =
            static_cast<float>((std::exp(double{row[c]}) / sum - (c == labels[i])) / 30);
      }
    }
    EXPECT_NEAR(loss.loss, want, 1e-12 * (1 + want));
    EXPECT_EQ(loss.correct, correct);
    // A value on either side of a tie may be rounded differently.
    const double unit = GetParam() == DType::kF32 ? 0x1p-23 : 0x1p-7;
    for (size_t i = 0; i < gradient.size(); ++i) {
      ASSERT_NEAR(loss.dlogits[i], gradient[i], unit * std::abs(gradient[i]) + 1e-16) << i;
    }
  }
}

TEST_P(CrossEntropyTest, TheGradientMayReplaceTheLogits) {
  constexpr int64_t kRows = 70, kClasses = 301;
  const Labels labels = SomeLabels(kRows, kClasses);
  TestTensor logits(GetParam(), {kRows, kClasses}, RandomFloats(kRows * kClasses, 1, 8));
  TestTensor dlogits(GetParam(), {kRows, kClasses});
  const Loss apart(2, &logits, &dlogits, labels, 5), in_place(2, &logits, &logits, labels, 5);
  EXPECT_EQ(apart.loss, in_place.loss);
  EXPECT_EQ(apart.correct, in_place.correct);
  EXPECT_EQ(apart.dlogits, in_place.dlogits);
}

TEST_P(CrossEntropyTest, DoesNotDependOnTheThreads) {
  constexpr int64_t kRows = 71, kClasses = 301;
  const Labels labels = SomeLabels(kRows, kClasses);
  TestTensor logits(GetParam(), {kRows, kClasses}, RandomFloats(kRows * kClasses, 1, 8));
  TestTensor a(GetParam(), {kRows, kClasses}), b(GetParam(), {kRows, kClasses});
  const Loss one(1, &logits, &a, labels, 5), three(3, &logits, &b, labels, 5);
  EXPECT_EQ(one.loss, three.loss);
  EXPECT_EQ(one.dlogits, three.dlogits);
  EXPECT_EQ(one.loss, Loss(2, &logits, nullptr, labels, 5).loss);
}

INSTANTIATE_TEST_SUITE_P(Types, CrossEntropyTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return Name(info.param); });

TEST(CrossEntropyTest, TheFirstOfEqualLogitsIsTheOneThatCounts) {
  Floats row(40, 1.0f);
  row[17] = row[30] = 2;
  TestTensor logits(DType::kF32, {1, 40}, row);
  EXPECT_EQ(Loss(1, &logits, nullptr, {17}, 1).correct, 1);
  EXPECT_EQ(Loss(1, &logits, nullptr, {30}, 1).correct, 0);
}

TEST(CrossEntropyTest, ANanAnywhereIsTheLoss) {
  for (int at : {0, 5, 39}) {
    Floats row(40, 1.0f);
    row[at] = std::nanf("");
    TestTensor logits(DType::kF32, {1, 40}, row);
    EXPECT_TRUE(std::isnan(Loss(1, &logits, &logits, {20}, 1).loss));
    EXPECT_TRUE(std::isnan(logits.Read()[at]));
  }
}

TEST(CrossEntropyTest, FarLogitsHaveNoShare) {
  TestTensor logits(DType::kF32, {1, 2}, {3e38f, -3e38f});
  const Loss loss(1, &logits, &logits, {0}, 1);
  EXPECT_EQ(loss.loss, 0);
  EXPECT_EQ(loss.dlogits, (Floats{0, 0}));
}

}  // namespace
}  // namespace thinwire::cpu
