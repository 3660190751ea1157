#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "compress/cuda/twins_testing.h"

namespace thinwire {
namespace {

using Sums = CodecKernels::Sums;

Sums Compared(const Twin& twin, const Tensor& host_x, const Tensor& host_y) {
  const Tensor x = On(twin.device, host_x), y = On(twin.device, host_y);
  Sums sums;
  const Error error = twin.kernels->Compare(x.view(), y.view(), &sums);
  EXPECT_TRUE(error.ok()) << error.message;
  return sums;
}

// Expects sums of the same fp64 terms in another order. With n terms, orders differ by at most n
// 2^-53 of the sum of their magnitudes, here below 2^-37; sums in trees by much less.
void ExpectEqualSums(const Tensor& x, const Tensor& y) {
  const Sums expected = Compared(CpuTwin(), x, y), met = Compared(GpuTwin(), x, y);
  constexpr double kTolerance = 1e-12;
  EXPECT_NEAR(met.difference, expected.difference, kTolerance * expected.difference);
  EXPECT_NEAR(met.x, expected.x, kTolerance * expected.x);
  EXPECT_NEAR(met.y, expected.y, kTolerance * expected.y);
  EXPECT_NEAR(met.product, expected.product, kTolerance * std::sqrt(expected.x * expected.y));
  EXPECT_EQ(met.nonzeros_x, expected.nonzeros_x);
  EXPECT_EQ(met.nonzeros_y, expected.nonzeros_y);
}

TEST(CudaCompareTest, OfEveryTypeAndSize) {
  for (const int64_t n : {0, 1, 3, 4, 255, 1024, 16383, 16384, 16385, 60001}) {
    for (const DType x_type : {DType::kF32, DType::kBF16}) {
      for (const DType y_type : {DType::kF32, DType::kBF16}) {
        SCOPED_TRACE(absl::StrCat(n, " elements of ", Name(x_type), " and ", Name(y_type)));
        std::vector<float> x = NormalValues(n, 1);
        for (float& value : x) value = std::fmax(value, 0.0f);
        ExpectEqualSums(HostTensor({n}, x_type, x), HostTensor({n}, y_type, NormalValues(n, 2)));
      }
    }
  }
}

TEST(CudaCompareTest, EveryElementCountsOnce) {
  constexpr int64_t kElements = 40000;
  for (const int64_t i : {0, 1, 16383, 16384, 32768, 39999}) {
    std::vector<float> x(kElements), y(kElements);
    x[i] = 3;
    y[i] = -2;
    const Sums sums = Compared(GpuTwin(), HostTensor({kElements}, DType::kF32, x),
                               HostTensor({kElements}, DType::kF32, y));
    EXPECT_EQ(sums.difference, 25);
    EXPECT_EQ(sums.x, 9);
    EXPECT_EQ(sums.y, 4);
    EXPECT_EQ(sums.product, -6);
    EXPECT_EQ(sums.nonzeros_x, 1);
    EXPECT_EQ(sums.nonzeros_y, 1);
  }
}

TEST(CudaCompareTest, FiniteValuesOfEverySizeHaveFiniteSums) {
  for (const NamedValues& named : FiniteCases(5000)) {
    SCOPED_TRACE(named.name);
    const Tensor x = HostTensor({5000}, DType::kF32, named.values);
    ExpectEqualSums(x, x);
    ExpectEqualSums(x, HostTensor({5000}, DType::kF32, NormalValues(5000, 7)));
  }
}

TEST(CudaCompareTest, NanAndInfinityShowInTheSumOfSquares) {
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = NormalValues(20000, 1);
    x[17000] = value;
    const Tensor tensor = HostTensor({20000}, DType::kF32, x);
    EXPECT_FALSE(std::isfinite(Compared(GpuTwin(), tensor, tensor).x));
  }
}

TEST(CudaCompareTest, UnequalTensorsAreRefusedAsOnTheCpu) {
  Error errors[2];
  const Twin twins[] = {CpuTwin(), GpuTwin()};
  for (int i = 0; i < 2; ++i) {
    const Tensor x = On(twins[i].device, HostTensor({3}, DType::kF32, {1, 2, 3}));
    const Tensor y = On(twins[i].device, HostTensor({2}, DType::kF32, {1, 2}));
    Sums sums;
    errors[i] = twins[i].kernels->Compare(x.view(), y.view(), &sums);
  }
  EXPECT_FALSE(errors[0].ok());
  ExpectSameError(errors[0], errors[1]);
}

}  // namespace
}  // namespace thinwire
