#include "nn/cpu/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "nn/cpu/tensors_testing.h"

namespace thinwire {
namespace {

TensorView View(DType type, void* data, int64_t n) {
  TensorView view;
  view.data = data;
  view.dtype = type;
  view.rank = 1;
  view.dims[0] = n;
  return view;
}

std::vector<uint16_t> Narrowed(std::vector<float> values) {
  std::vector<uint16_t> narrow(values.size());
  const auto ops = NewCpuOps(1);
  EXPECT_TRUE(ops->Convert(View(DType::kF32, values.data(), values.size()),
                           View(DType::kBF16, narrow.data(), narrow.size()))
                  .ok());
  return narrow;
}

// Narrows 20 copies, so that every instruction set has them in a vector and in the rest.
uint16_t NarrowedOne(float value) {
  const std::vector<uint16_t> narrow = Narrowed(std::vector<float>(20, value));
  for (uint16_t n : narrow) EXPECT_EQ(n, narrow[0]);
  return narrow[0];
}

TEST(BF16Test, NothingNeedsNoMemory) { EXPECT_TRUE(Narrowed({}).empty()); }

TEST(BF16Test, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(NarrowedOne(1.0f), 0x3F80);
  EXPECT_EQ(NarrowedOne(1.0f + 0x1p-8f), 0x3F80);            // tie, down to even
  EXPECT_EQ(NarrowedOne(1.0f + 0x1p-7f + 0x1p-8f), 0x3F82);  // tie, up to even
  EXPECT_EQ(NarrowedOne(1.0f + 0x1p-8f + 0x1p-20f), 0x3F81);
  EXPECT_EQ(NarrowedOne(-1.0f - 0x1p-8f - 0x1p-20f), 0xBF81);
}

TEST(BF16Test, TooLargeIsInfiniteAndNanStaysNan) {
  EXPECT_EQ(NarrowedOne(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(NarrowedOne(std::numeric_limits<float>::infinity()), 0x7F80);
  const uint32_t bits = 0x7FFFFFFF;  // adding the rounding would carry into the sign
  float nan;
  std::memcpy(&nan, &bits, sizeof(nan));
  EXPECT_EQ(NarrowedOne(nan) & 0x7FC0, 0x7FC0);
}

TEST(BF16Test, SmallNumbersAreNotFlushed) {
  EXPECT_EQ(NarrowedOne(0x1p-130f), 0x0008);
  EXPECT_EQ(NarrowedOne(-0.0f), 0x8000);
}

TEST(BF16Test, WideningIsExact) {
  std::vector<uint16_t> every(65536);
  for (size_t i = 0; i < every.size(); ++i) every[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(every.size());
  const auto ops = NewCpuOps(2);
  ASSERT_TRUE(ops->Convert(View(DType::kBF16, every.data(), every.size()),
                           View(DType::kF32, wide.data(), wide.size()))
                  .ok());
  const std::vector<uint16_t> back = Narrowed(wide);
  for (size_t i = 0; i < every.size(); ++i) {
    if (std::isnan(wide[i])) continue;
    EXPECT_EQ(back[i], every[i]);
  }
}

TEST(CpuOpsTest, DoesNotComputeInFP16) {
  const Error error = NewCpuOps(1)->CheckComputeType(DType::kF16);
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuOpsTest, RefusesAKernelLargerThanTheImage) {
  Conv2dSpec spec;
  spec.in_channels = spec.out_channels = 1;
  spec.height = spec.width = 4;
  spec.kernel = 7;
  spec.padding = 1;
  Conv2d* conv = nullptr;
  const Error error = NewCpuOps(1)->NewConv2d(spec, &conv);
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(conv, nullptr);
}

// Returns rows of `features` values around 1 that are no round numbers.
std::vector<float> Wavy(int64_t rows, int64_t features) {
  std::vector<float> values(rows * features);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 1.0f + static_cast<float>(std::sin(0.7 * static_cast<double>(i * i)));
  }
  return values;
}

TensorView Rows(DType type, void* data, int64_t rows, int64_t features) {
  TensorView view = View(type, data, rows);
  view.rank = 2;
  view.dims[1] = features;
  return view;
}

// Everything that a forward and backward pass writes, in fp32.
struct LayerNormPass {
  std::vector<float> y, mean, rstd, dx, dscale, dbias;

  LayerNormPass(int threads, int64_t rows, int64_t features, bool centred = true)
      : y(rows * features),
        mean(rows),
        rstd(rows),
        dx(rows * features),
        dscale(features, 0.25f),  // gradients are added to what is there
        dbias(features, -0.5f) {
    std::vector<float> x = Wavy(rows, features), dy = Wavy(rows, features);
    std::reverse(dy.begin(), dy.end());
    const std::vector<float> scale = Wavy(1, features), bias(features, 3.0f);
    const auto ops = NewCpuOps(threads);
    LayerNormForward forward;
    forward.x = Rows(DType::kF32, x.data(), rows, features);
    forward.y = Rows(DType::kF32, y.data(), rows, features);
    forward.scale = scale.data();
    forward.bias = centred ? bias.data() : nullptr;
    forward.mean = centred ? mean.data() : nullptr;
    forward.rstd = rstd.data();
    forward.centred = centred;
    EXPECT_TRUE(ops->NormalizeRows(forward).ok());
    LayerNormBackward backward;
    backward.x = forward.x;
    backward.dy = Rows(DType::kF32, dy.data(), rows, features);
    backward.dx = Rows(DType::kF32, dx.data(), rows, features);
    backward.scale = scale.data();
    backward.mean = forward.mean;
    backward.rstd = rstd.data();
    backward.dscale = dscale.data();
    backward.dbias = centred ? dbias.data() : nullptr;
    backward.centred = centred;
    EXPECT_TRUE(ops->NormalizeRowsBackward(backward).ok());
  }
};

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << i;
  }
}

// Compares with the textbook's formulas in fp64: dx = (g - mean(g) - xhat mean(g xhat)) / sigma.
TEST(LayerNormTest, IsWhatTheFormulasSay) {
  constexpr int64_t kRows = 70, kFeatures = 37;  // more than a tile of rows, no full vectors
  const LayerNormPass pass(2, kRows, kFeatures);
  const std::vector<float> x = Wavy(kRows, kFeatures), scale = Wavy(1, kFeatures);
  std::vector<float> dy = x;
  std::reverse(dy.begin(), dy.end());
  std::vector<double> y, dx, dscale(kFeatures, 0.25), dbias(kFeatures, -0.5);
  for (int64_t row = 0; row < kRows; ++row) {
    const float *values = &x[row * kFeatures], *gradients = &dy[row * kFeatures];
    double mean = 0, variance = 0, g_mean = 0, product_mean = 0;
    for (int64_t j = 0; j < kFeatures; ++j) mean += values[j] / double{kFeatures};
    for (int64_t j = 0; j < kFeatures; ++j) {
      variance += (values[j] - mean) * (values[j] - mean) / kFeatures;
    }
    const double sigma = std::sqrt(variance + 1e-5);
    for (int64_t j = 0; j < kFeatures; ++j) {
      const double xhat = (values[j] - mean) / sigma, g = double{gradients[j]} * scale[j];
      g_mean += g / kFeatures;
      product_mean += g * xhat / kFeatures;
      y.push_back(scale[j] * xhat + 3);
      dscale[j] += gradients[j] * xhat;
      dbias[j] += gradients[j];
    }
    for (int64_t j = 0; j < kFeatures; ++j) {
      const double xhat = (values[j] - mean) / sigma, g = double{gradients[j]} * scale[j];
      dx.push_back((g - g_mean - xhat * product_mean) / sigma);
    }
  }
  ExpectNear(pass.y, y);
  ExpectNear(pass.dx, dx);
  ExpectNear(pass.dscale, dscale);
  ExpectNear(pass.dbias, dbias);
}

// If not centred, dx = (g - xhat mean(g xhat)) / r, where r is the root of the mean square.
TEST(RmsNormTest, IsWhatTheFormulasSay) {
  constexpr int64_t kRows = 70, kFeatures = 37;
  const LayerNormPass pass(2, kRows, kFeatures, /*centred=*/false);
  const std::vector<float> x = Wavy(kRows, kFeatures), scale = Wavy(1, kFeatures);
  std::vector<float> dy = x;
  std::reverse(dy.begin(), dy.end());
  std::vector<double> y, dx, dscale(kFeatures, 0.25);
  for (int64_t row = 0; row < kRows; ++row) {
    const float *values = &x[row * kFeatures], *gradients = &dy[row * kFeatures];
    double square = 0, product_mean = 0;
    for (int64_t j = 0; j < kFeatures; ++j) square += double{values[j]} * values[j] / kFeatures;
    const double root = std::sqrt(square + 1e-5);
    for (int64_t j = 0; j < kFeatures; ++j) {
      const double xhat = values[j] / root;
      product_mean += double{gradients[j]} * scale[j] * xhat / kFeatures;
      y.push_back(scale[j] * xhat);
      dscale[j] += gradients[j] * xhat;
    }
    for (int64_t j = 0; j < kFeatures; ++j) {
      dx.push_back((double{gradients[j]} * scale[j] - values[j] / root * product_mean) / root);
    }
    EXPECT_NEAR(pass.rstd[row], 1 / root, 1e-5);
  }
  ExpectNear(pass.y, y);
  ExpectNear(pass.dx, dx);
  ExpectNear(pass.dscale, dscale);
}

TEST(LayerNormTest, DoesNotDependOnTheThreads) {
  for (bool centred : {true, false}) {
    const LayerNormPass one(1, 1000, 40, centred), three(3, 1000, 40, centred);
    EXPECT_EQ(one.y, three.y);
    EXPECT_EQ(one.dx, three.dx);
    EXPECT_EQ(one.dscale, three.dscale);
    EXPECT_EQ(one.dbias, three.dbias);
  }
}

TEST(LayerNormTest, AConstantRowBecomesItsBias) {
  std::vector<float> x(20, 7.0f), y(20), scale(20, 2.0f), bias(20, 0.5f), mean(1), rstd(1);
  LayerNormForward a;
  a.x = Rows(DType::kF32, x.data(), 1, 20);
  a.y = Rows(DType::kF32, y.data(), 1, 20);
  a.scale = scale.data();
  a.bias = bias.data();
  a.mean = mean.data();
  a.rstd = rstd.data();
  ASSERT_TRUE(NewCpuOps(1)->NormalizeRows(a).ok());
  EXPECT_EQ(y, bias);
  EXPECT_EQ(mean[0], 7.0f);
}

TEST(MaxoutTest, TheFirstOfEqualMaximaIsKeptAndTakesTheGradient) {
  std::vector<float> x = {1, 3, 3, -5, -2, -9}, y(2), dy = {10, 20}, dx(6, 99.0f);
  const auto ops = NewCpuOps(1);
  const TensorView in = Rows(DType::kF32, x.data(), 1, 6);
  ASSERT_TRUE(ops->Maxout(3, in, Rows(DType::kF32, y.data(), 1, 2)).ok());
  EXPECT_EQ(y, (std::vector<float>{3, -2}));
  ASSERT_TRUE(ops->MaxoutBackward(3, in, Rows(DType::kF32, dy.data(), 1, 2),
                                  Rows(DType::kF32, dx.data(), 1, 6))
                  .ok());
  EXPECT_EQ(dx, (std::vector<float>{0, 10, 0, 0, 20, 0}));
}

TEST(MaxoutTest, ANanWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x = {1, nan, 3, nan, 5, 2}, y(2);
  ASSERT_TRUE(NewCpuOps(1)
                  ->Maxout(3, Rows(DType::kF32, x.data(), 1, 6), Rows(DType::kF32, y.data(), 1, 2))
                  .ok());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
}

TEST(ResizeTest, KeepsTheFirstFeaturesOfARowOrAddsZeros) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, narrow(4, 99.0f), wide(8, 99.0f);
  const auto ops = NewCpuOps(2);
  const TensorView in = Rows(DType::kF32, x.data(), 2, 3);
  ASSERT_TRUE(ops->Resize(in, Rows(DType::kF32, narrow.data(), 2, 2)).ok());
  ASSERT_TRUE(ops->Resize(in, Rows(DType::kF32, wide.data(), 2, 4)).ok());
  EXPECT_EQ(narrow, (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(wide, (std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0}));
}

TEST(CopyColumnsTest, LeavesOtherElementsAsTheyAre) {
  std::vector<float> from = {1, 2, 3, 4, 5, 6}, to(8, 9.0f);
  ColumnCopy a;
  a.from = Rows(DType::kF32, from.data(), 2, 3);
  a.to = Rows(DType::kF32, to.data(), 2, 4);
  a.from_column = 1;
  a.to_column = 2;
  a.columns = 2;
  ASSERT_TRUE(NewCpuOps(2)->CopyColumns(a).ok());
  EXPECT_EQ(to, (std::vector<float>{9, 9, 2, 3, 9, 9, 5, 6}));
}

TEST(CombineTest, AddsMultiplesPerhapsInPlace) {
  std::vector<float> a(37, 2.0f), b(37, 3.0f);
  const auto ops = NewCpuOps(2);
  ASSERT_TRUE(ops->Combine({0.5f, a.data(), -2.0f, b.data(), a.data(), 37}).ok());
  EXPECT_EQ(a, std::vector<float>(37, -5.0f));
  ASSERT_TRUE(ops->Combine({4.0f, b.data(), 1.0f, nullptr, b.data(), 37}).ok());
  EXPECT_EQ(b, std::vector<float>(37, 12.0f));
}

// Computes y = x W^T + b of n rows and its gradients, added to ones, in fp64.
struct LinearProduct {
  int64_t n, in, out;
  cpu::Floats x, weights, bias, dy;
  cpu::Floats y, dx, weights_gradient, bias_gradient;

  LinearProduct(int64_t n, int64_t in, int64_t out, DType compute)
      : n(n),
        in(in),
        out(out),
        x(Rounded(n * in, 1, compute)),
        weights(Rounded(out * in, 2, compute)),
        bias(cpu::RandomFloats(out, 3)),
        dy(Rounded(n * out, 4, compute)),
        y(n * out),
        dx(n * in),
        weights_gradient(out * in),
        bias_gradient(out, 1) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t r = 0; r < n; ++r) bias_gradient[o] += dy[r * out + o];
    }
    Multiply(n, out, in, x.data(), in, 1, weights.data(), in, 1, &y);
    for (int64_t i = 0; i < n * out; ++i) y[i] += bias[i % out];
    Multiply(n, in, out, dy.data(), out, 1, weights.data(), 1, in, &dx);
    Multiply(out, in, n, dy.data(), 1, out, x.data(), 1, in, &weights_gradient);
    for (float& value : weights_gradient) value += 1;
  }

  static cpu::Floats Rounded(int64_t n, uint64_t seed, DType compute) {
    return cpu::TestTensor(compute, {n}, cpu::RandomFloats(n, seed)).Read();
  }
  // Computes c[i, j] = sum over k of a[i, k] b[j, k], with strides of a and b for both indices.
  static void Multiply(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_i,
                       int64_t a_k, const float* b, int64_t b_j, int64_t b_k, cpu::Floats* c) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum +=
              static_cast<double>(a[i * a_i + k * a_k]) * static_cast<double>(b[j * b_j + k * b_k]);
        }
        (*c)[i * columns + j] = static_cast<float>(sum);
      }
    }
  }
};

void ExpectNear(const cpu::Floats& got, const cpu::Floats& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  const float greatest = *std::max_element(want.begin(), want.end());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance * greatest) << i;
}

// oneDNN multiplies small and large weights in different ways, and those of an adapter, from few
// features to many.
TEST(LinearTest, IsAProductForSmallAndLargeWeights) {
  struct Size {
    int64_t n, in, out;
  };
  for (const DType compute : {DType::kF32, DType::kBF16}) {
    for (const auto& [n, in, out] : {Size{9, 33, 257}, {9, 320, 257}, {64, 8, 2048}}) {
      const LinearProduct product(n, in, out, compute);
      const auto ops = NewCpuOps(2);
      if (!ops->CheckComputeType(compute).ok()) continue;
      LinearSpec spec;
      spec.in_features = in;
      spec.out_features = product.out;
      spec.bias = true;
      spec.compute = compute;
      Linear* made = nullptr;
      ASSERT_TRUE(ops->NewLinear(spec, &made).ok());
      const std::unique_ptr<Linear> linear(made);
      cpu::TestTensor x(compute, {n, in}, product.x), dy(compute, {n, out}, product.dy),
          y(compute, {n, out}), dx(compute, {n, in});
      cpu::Floats weights_gradient(out * in, 1), bias_gradient(out, 1);
      // Loads weights that are used, some that nothing uses, and those of the product.
      const cpu::Floats others(product.weights.size(), 1);
      for (const cpu::Floats* weights : {&others, &product.weights}) {
        ASSERT_TRUE(linear->LoadWeights(others.data(), product.bias.data()).ok());
        ASSERT_TRUE(linear->LoadWeights(weights->data(), product.bias.data()).ok());
        ASSERT_TRUE(linear->Forward(x.view(), y.view()).ok());
        ASSERT_TRUE(linear->BackwardData(dy.view(), dx.view()).ok());
      }
      ASSERT_TRUE(
          linear
              ->BackwardWeights(x.view(), dy.view(), weights_gradient.data(), bias_gradient.data())
              .ok());
      const float rounding = compute == DType::kF32 ? 1e-5f : 0x1p-7f;
      ExpectNear(y.Read(), product.y, rounding);
      ExpectNear(dx.Read(), product.dx, rounding);
      ExpectNear(weights_gradient, product.weights_gradient, 1e-5f);
      ExpectNear(bias_gradient, product.bias_gradient, 1e-5f);
    }
  }
}

}  // namespace
}  // namespace thinwire
