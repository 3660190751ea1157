#include "compress/cpu/orthonormal.h"

#include <algorithm>
#include <cmath>

namespace thinwire {
namespace {

constexpr double kVanished = 0x1p-20;
// Share of its length below which a column consists mostly of rounding errors, so that it is made
// orthogonal once more.
constexpr double kLostMuch = 0.5;

// Returns <a, b> from eight running sums, which the compiler keeps in vectors, added up pairwise.
double Dot(const float* a, const float* b, size_t n) {
  constexpr size_t kSums = 8;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) {
      sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
    }
  }
  for (size_t k = 0; i + k < n; ++k) {
    sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Subtracts from p its components: p -= <q, p> q for each of the `count` columns q.
void TakeAway(const float* columns, size_t count, size_t n, float* p) {
  for (size_t k = 0; k < count; ++k) {
    const float* q = columns + k * n;
    const double along = Dot(q, p, n);
    if (along == 0) continue;
    for (size_t i = 0; i < n; ++i) {
      p[i] = static_cast<float>(static_cast<double>(p[i]) - along * static_cast<double>(q[i]));
    }
  }
}

}  // namespace

void Orthonormalise(float* p, size_t n, size_t count) {
  for (size_t j = 0; j < count; ++j) {
    float* column = p + j * n;
    const double before = std::sqrt(Dot(column, column, n));
    TakeAway(p, j, n, column);
    double left = std::sqrt(Dot(column, column, n));
    if (left < kLostMuch * before && left > kVanished * before) {
      TakeAway(p, j, n, column);
      left = std::sqrt(Dot(column, column, n));
    }
    if (left <= kVanished * before) {
      std::fill_n(column, n, 0.0f);
      continue;
    }
    for (size_t i = 0; i < n; ++i) column[i] = static_cast<float>(column[i] / left);
  }
}

}  // namespace thinwire
