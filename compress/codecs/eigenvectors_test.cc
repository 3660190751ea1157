#include "compress/codecs/eigenvectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace thinwire {
namespace {

std::vector<double> RandomSymmetric(int n, double decay) {
  RandomStream random(RandomKey(n, "symmetric"));
  std::vector<double> matrix(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      matrix[i * n + j] = matrix[j * n + i] =
          (random.NextFloat() - 0.5) * std::exp(-decay * (i + j));
    }
  }
  return matrix;
}

// Returns the largest deviation of A v from its value times v, and of v v^T from 1.
void ExpectEigenvectors(const std::vector<double>& matrix, int n) {
  const Eigenvectors found = EigenvectorsOf(matrix, n);
  ASSERT_EQ(found.values.size(), static_cast<size_t>(n));
  ASSERT_TRUE(std::is_sorted(found.values.rbegin(), found.values.rend()));
  for (int k = 0; k < n; ++k) {
    const double* const v = &found.vectors[k * n];
    for (int i = 0; i < n; ++i) {
      double product = 0, along = 0;
      for (int j = 0; j < n; ++j) product += matrix[i * n + j] * v[j];
      for (int j = 0; j < n; ++j) along += found.vectors[i * n + j] * v[j];
      EXPECT_NEAR(product, found.values[k] * v[i], 1e-13) << n << ": " << k << " " << i;
      EXPECT_NEAR(along, i == k ? 1 : 0, 1e-13) << n << ": " << k << " " << i;
    }
  }
}

TEST(EigenvectorsTest, OfMatricesOfManySizes) {
  for (const int n : {1, 2, 3, 4, 7, 40, 97}) {
    ExpectEigenvectors(RandomSymmetric(n, 0), n);
    ExpectEigenvectors(RandomSymmetric(n, 0.3), n);
  }
}

TEST(EigenvectorsTest, OfMatricesWithEqualValues) {
  constexpr int kSize = 6;
  ExpectEigenvectors(std::vector<double>(kSize * kSize, 0.0), kSize);
  ExpectEigenvectors(std::vector<double>(kSize * kSize, 1.0), kSize);
  std::vector<double> identity(kSize * kSize);
  for (int i = 0; i < kSize; ++i) identity[i * kSize + i] = i < 3 ? 1 : -1;
  ExpectEigenvectors(identity, kSize);
}

TEST(EigenvectorsTest, AKnownMatrix) {
  const Eigenvectors found = EigenvectorsOf({2, 1, 1, 2}, 2);
  EXPECT_NEAR(found.values[0], 3, 1e-15);
  EXPECT_NEAR(found.values[1], 1, 1e-15);
  EXPECT_NEAR(std::fabs(found.vectors[0]), std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(found.vectors[0], found.vectors[1], 1e-15);
  EXPECT_NEAR(found.vectors[2], -found.vectors[3], 1e-15);
}

}  // namespace
}  // namespace thinwire
