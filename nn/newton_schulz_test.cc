// Compares with the same polynomials in fp64, on the CPU and on the GPU under test.
#include "nn/newton_schulz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "nn/cpu/ops.h"
#include "nn/cuda/tested_ops_testing.h"
#include "tensor/copy_testing.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using Doubles = std::vector<double>;

struct Place {
  const char* name;
  Device* (*device)();
  std::unique_ptr<Ops> (*new_ops)();
};
const Place kCpu = {"Cpu", &CpuDevice, [] { return NewCpuOps(2); }};
const Place kTested = {"Tested", &TestedDevice, [] { return NewTestedOps(); }};

// Returns a b or a b^T; a is [n, k] and b is [k, m] or [m, k].
Doubles Product(const Doubles& a, const Doubles& b, int64_t n, int64_t k, int64_t m,
                bool transposed) {
  Doubles product(n * m);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t l = 0; l < k; ++l) {
        product[i * m + j] += a[i * k + l] * (transposed ? b[j * k + l] : b[l * m + j]);
      }
    }
  }
  return product;
}

Doubles Applied(const OddQuintic& p, int steps, Doubles x, int64_t rows, int64_t columns) {
  for (int s = 0; s < steps; ++s) {
    const Doubles gram = Product(x, x, rows, columns, rows, /*transposed=*/true);
    const Doubles cubic = Product(gram, x, rows, rows, columns, /*transposed=*/false);
    const Doubles quintic = Product(gram, cubic, rows, rows, columns, /*transposed=*/false);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<double>(p.a) * x[i] + static_cast<double>(p.b) * cubic[i] +
             static_cast<double>(p.c) * quintic[i];
    }
  }
  return x;
}

// Returns a random matrix of Frobenius norm 1.
Doubles RandomMatrix(int64_t rows, int64_t columns) {
  RandomStream random(RandomKey(3, "matrix"));
  Doubles x(rows * columns);
  double squares = 0;
  for (double& value : x) {
    value = static_cast<double>(random.NextFloat()) - 0.5;
    squares += value * value;
  }
  for (double& value : x) value /= std::sqrt(squares);
  return x;
}

class NewtonSchulzTest : public testing::TestWithParam<const Place*> {
 protected:
  NewtonSchulzTest()
      : device_(GetParam()->device()), ops_(GetParam()->new_ops()), iterate_(device_, ops_.get()) {}

  Doubles Apply(const OddQuintic& p, int steps, const Doubles& x, int64_t rows, int64_t columns) {
    Tensor host = *Tensor::Allocate(CpuDevice(), DType::kF32, {rows, columns});
    std::copy(x.begin(), x.end(), host.floats().begin());
    const Tensor matrix = On(device_, host);
    EXPECT_TRUE(iterate_.Apply(p, steps, {static_cast<float*>(matrix.data()), rows, columns}).ok());
    const Tensor back = On(CpuDevice(), matrix);
    return Doubles(back.floats().begin(), back.floats().end());
  }

  Device* const device_;
  const std::unique_ptr<Ops> ops_;
  NewtonSchulz iterate_;
};

TEST_P(NewtonSchulzTest, IsThePolynomialOfWideTallAndSquareMatrices) {
  for (const auto& [rows, columns] :
       {std::pair{5, 12}, {12, 5}, {9, 9}, {1, 7}, {7, 1}, {48, 20}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const Doubles x = RandomMatrix(rows, columns);
    for (const OddQuintic& p : {kSteepQuintic, kNewtonsCubic}) {
      const Doubles want = Applied(p, 5, x, rows, columns);
      const Doubles got = Apply(p, 5, x, rows, columns);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5) << i;
    }
  }
}

TEST_P(NewtonSchulzTest, NewtonsCubicMakesRowsOrthonormal) {
  const Doubles x = Apply(kNewtonsCubic, 30, RandomMatrix(6, 20), 6, 20);
  const Doubles gram = Product(x, x, 6, 20, 6, /*transposed=*/true);
  for (int i = 0; i < 36; ++i) EXPECT_NEAR(gram[i], i % 7 == 0 ? 1 : 0, 2e-6);
}

TEST_P(NewtonSchulzTest, TheSteepQuinticLeavesSingularValuesNearOne) {
  const Doubles x = Apply(kSteepQuintic, 5, RandomMatrix(6, 20), 6, 20);
  const Doubles gram = Product(x, x, 6, 20, 6, /*transposed=*/true);
  double trace = 0;
  for (int i = 0; i < 6; ++i) trace += gram[i * 7];
  EXPECT_GT(trace, 6 * 0.7 * 0.7);
  EXPECT_LT(trace, 6 * 1.2 * 1.2);
}

TEST_P(NewtonSchulzTest, ZerosStayZeros) {
  const Doubles zeros(12);
  EXPECT_EQ(Apply(kSteepQuintic, 5, zeros, 3, 4), zeros);
}

INSTANTIATE_TEST_SUITE_P(Places, NewtonSchulzTest, testing::Values(&kCpu, &kTested),
                         [](const auto& place) { return std::string(place.param->name); });

}  // namespace
}  // namespace thinwire
