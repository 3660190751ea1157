#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "hwy/targets.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/tensors_testing.h"
#include "nn/cpu/weighted.h"

namespace thinwire::cpu {
namespace {

Conv2dSpec Spec(int64_t in, int64_t out, int64_t height, int64_t width,
                DType compute = DType::kF32) {
  Conv2dSpec spec;
  spec.in_channels = in;
  spec.out_channels = out;
  spec.height = height;
  spec.width = width;
  spec.kernel = 3;
  spec.padding = 1;
  spec.compute = compute;
  return spec;
}

// Returns random values that the compute type can represent.
Floats Rounded(int64_t n, uint64_t seed, DType compute) {
  return TestTensor(compute, {n}, RandomFloats(n, seed)).Read();
}

using Doubles = std::vector<double>;

// What a convolution reads and makes; gradients of weights are added to ones.
template <typename Values>
struct Pass {
  Values y, dx, weights_gradient;
};

struct Problem {
  Conv2dSpec spec;
  int64_t n;
  Floats x, weights, dy;

  Problem(const Conv2dSpec& spec, int64_t n)
      : spec(spec),
        n(n),
        x(Rounded(n * spec.height * spec.width * spec.in_channels, 1, spec.compute)),
        weights(RandomFloats(spec.out_channels * spec.in_channels * 9, 2)),
        dy(Rounded(n * spec.height * spec.width * spec.out_channels, 3, spec.compute)) {}

  // Computes the results by definition, in fp64.
  Pass<Doubles> Expected() const {
    Pass<Doubles> pass{Doubles(dy.size()), Doubles(x.size()), Doubles(weights.size(), 1)};
    const int64_t in = spec.in_channels, out = spec.out_channels, pixels = spec.height * spec.width;
    for (int64_t place = 0; place < n * pixels; ++place) {
      const int64_t row = place % pixels / spec.width, column = place % spec.width;
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t from_row = row + tap / 3 - 1, from_column = column + tap % 3 - 1;
        if (from_row < 0 || from_row >= spec.height) continue;
        if (from_column < 0 || from_column >= spec.width) continue;
        const int64_t from = place / pixels * pixels + from_row * spec.width + from_column;
        for (int64_t o = 0; o < out; ++o) {
          for (int64_t i = 0; i < in; ++i) {
            const int64_t w = (o * in + i) * 9 + tap;
            pass.y[place * out + o] += double{x[from * in + i]} * double{weights[w]};
            pass.dx[from * in + i] += double{dy[place * out + o]} * double{weights[w]};
            pass.weights_gradient[w] += double{x[from * in + i]} * double{dy[place * out + o]};
          }
        }
      }
    }
    return pass;
  }

  Pass<Floats> Computed(int threads) const {
    OneDnn onednn(threads);
    return By(NewWinogradConv2d(&onednn, spec).get());
  }
  Pass<Floats> ComputedDirectly(int threads) const {
    OneDnn onednn(threads);
    Weighted<Conv2d> direct(&onednn, NewConv2dKind(&onednn, spec));
    return By(&direct);
  }

 private:
  Pass<Floats> By(Conv2d* conv) const {
    const Shape in{n, spec.height, spec.width, spec.in_channels},
        out{n, spec.height, spec.width, spec.out_channels};
    TestTensor x_tensor(spec.compute, in, x), dy_tensor(spec.compute, out, dy),
        y(spec.compute, out), dx(spec.compute, in);
    Floats weights_gradient(weights.size(), 1);
    EXPECT_TRUE(conv->LoadWeights(weights.data(), nullptr).ok());
    EXPECT_TRUE(conv->Forward(x_tensor.view(), y.view()).ok());
    EXPECT_TRUE(conv->BackwardData(dy_tensor.view(), dx.view()).ok());
    EXPECT_TRUE(
        conv->BackwardWeights(x_tensor.view(), dy_tensor.view(), weights_gradient.data(), nullptr)
            .ok());
    return {y.Read(), dx.Read(), weights_gradient};
  }
};

// Returns the greatest difference, divided by the root of the mean square of `want`.
double RelativeError(const Floats& got, const Doubles& want) {
  EXPECT_EQ(got.size(), want.size());
  double greatest = 0, squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    greatest = std::max(greatest, std::abs(double{got[i]} - want[i]));
    squares += want[i] * want[i];
  }
  return greatest / std::sqrt(squares / static_cast<double>(want.size()));
}

// Runs with each instruction set that this machine has.
TEST(WinogradTest, IsTheConvolution) {
  // Filters of few channels for many tiles, so that a thread takes several blocks; and the reverse.
  const std::vector<Problem> problems = {
      Problem(Spec(16, 16, 32, 32), 4), Problem(Spec(144, 16, 4, 8), 60),
      Problem(Spec(48, 16, 7, 12), 3),  Problem(Spec(32, 80, 11, 6), 1),
      Problem(Spec(64, 144, 8, 8), 2),  Problem(Spec(16, 32, 4, 4), 1)};
  for (const Problem& problem : problems) {
    const Pass<Doubles> want = problem.Expected();
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      const Pass<Floats> got = problem.Computed(2);
      EXPECT_LT(RelativeError(got.y, want.y), 2e-5) << hwy::TargetName(target);
      EXPECT_LT(RelativeError(got.dx, want.dx), 2e-5) << hwy::TargetName(target);
      EXPECT_LT(RelativeError(got.weights_gradient, want.weights_gradient), 2e-5)
          << hwy::TargetName(target);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(WinogradTest, RoundsLessThanTenTimesAsCoarselyAsADirectConvolution) {
  for (const Problem& problem : {Problem(Spec(16, 16, 8, 8), 3), Problem(Spec(64, 64, 8, 8), 4),
                                 Problem(Spec(144, 16, 8, 8), 9)}) {
    const Pass<Doubles> want = problem.Expected();
    const Pass<Floats> got = problem.Computed(2), direct = problem.ComputedDirectly(2);
    const auto compare = [](const char* what, const Floats& ours, const Floats& directly,
                            const Doubles& exact) {
      const double error = RelativeError(ours, exact),
                   direct_error = RelativeError(directly, exact);
      std::printf("%s: %.2g, directly %.2g\n", what, error, direct_error);
      EXPECT_LT(error, 10 * direct_error) << what;
    };
    compare("y", got.y, direct.y, want.y);
    compare("dx", got.dx, direct.dx, want.dx);
    compare("dW", got.weights_gradient, direct.weights_gradient, want.weights_gradient);
  }
}

// Sums are fp32; only stored values are rounded.
TEST(WinogradTest, IsTheConvolutionInBF16) {
  const Conv2dSpec spec = Spec(64, 80, 7, 8, DType::kBF16);
  if (!WinogradPays(spec)) GTEST_SKIP() << "oneDNN's is faster here";
  const Problem problem(spec, 3);
  const Pass<Doubles> want = problem.Expected();
  const Pass<Floats> got = problem.Computed(2);
  const double most = 6 * 0x1p-8;  // half of the last digit of a value six times the mean
  EXPECT_LT(RelativeError(got.y, want.y), most);
  EXPECT_LT(RelativeError(got.dx, want.dx), most);
  EXPECT_LT(RelativeError(got.weights_gradient, want.weights_gradient), 2e-5);
}

// Has more tiles than are computed at once.
TEST(WinogradTest, ActivationsAndTheirGradientsDoNotDependOnTheThreads) {
  for (const Problem& problem :
       {Problem(Spec(16, 16, 32, 32), 20), Problem(Spec(128, 64, 8, 8), 30)}) {
    const Pass<Floats> one = problem.Computed(1), three = problem.Computed(3);
    EXPECT_EQ(one.y, three.y);
    EXPECT_EQ(one.dx, three.dx);
  }
}

TEST(WinogradTest, NewWeightsTakeEffect) {
  const Problem problem(Spec(16, 16, 4, 4), 1);
  OneDnn onednn(1);
  const std::unique_ptr<Conv2d> conv = NewWinogradConv2d(&onednn, problem.spec);
  const Shape shape{1, 4, 4, 16};
  Floats zeros(problem.weights.size()), y(problem.dy.size()), dx(problem.x.size());
  for (const Floats* weights : {&problem.weights, &std::as_const(zeros)}) {
    ASSERT_TRUE(conv->LoadWeights(problem.weights.data(), nullptr).ok());  // which nothing uses
    ASSERT_TRUE(conv->LoadWeights(weights->data(), nullptr).ok());
    ASSERT_TRUE(conv->Forward(View(DType::kF32, shape, problem.x.data()),
                              View(DType::kF32, shape, y.data()))
                    .ok());
    ASSERT_TRUE(conv->BackwardData(View(DType::kF32, shape, problem.dy.data()),
                                   View(DType::kF32, shape, dx.data()))
                    .ok());
  }
  EXPECT_EQ(y, Floats(y.size()));
  EXPECT_EQ(dx, Floats(dx.size()));
}

TEST(WinogradTest, PaysWhereATileHoldsEnoughPixels) {
  EXPECT_TRUE(WinogradPays(Spec(16, 32, 4, 4)));
  EXPECT_TRUE(WinogradPays(Spec(16, 16, 7, 7)));
  EXPECT_FALSE(WinogradPays(Spec(16, 16, 2, 2)));
  EXPECT_FALSE(WinogradPays(Spec(16, 16, 5, 5)));
  EXPECT_FALSE(WinogradPays(Spec(3, 16, 32, 32)));
  EXPECT_FALSE(WinogradPays(Spec(16, 8, 32, 32)));
  EXPECT_FALSE(WinogradPays(Spec(32, 64, 32, 32, DType::kBF16)));
  Conv2dSpec spec = Spec(16, 16, 32, 32);
  spec.stride = 2;
  EXPECT_FALSE(WinogradPays(spec));
  spec = Spec(16, 16, 32, 32);
  spec.bias = true;
  EXPECT_FALSE(WinogradPays(spec));
}

}  // namespace
}  // namespace thinwire::cpu
