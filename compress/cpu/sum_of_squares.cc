#include "compress/cpu/sum_of_squares.h"

#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scratch.h"
#include "compress/cpu/square_order.h"

namespace thinwire {
namespace {

static_assert(kSquareStretch == kBlock, "a stretch is read as one block");

double SumOfStretch(const float* x, int64_t n) {
  double lanes[kSquareLanes] = {};
  int64_t i = 0;
  for (; i + kSquareLanes <= n; i += kSquareLanes) {
    for (int64_t lane = 0; lane < kSquareLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (; i < n; ++i) lanes[i % kSquareLanes] += double{x[i]} * double{x[i]};
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double SumOfSquares(const TensorView& x, int64_t begin, int64_t n, int threads) {
  static thread_local Scratch<double> memory;
  const int64_t num_stretches = (n + kSquareStretch - 1) / kSquareStretch;
  double* const stretches = memory.Get(num_stretches);
  ForEachPart(Parts(n, threads, kSquareStretch), [&](int, int64_t first, int64_t last) {
    alignas(64) float scratch[kBlock];
    ForEachBlock(first, last, [&](int64_t i, size_t length) {
      const float* const values = ReadFloats(x, begin + i, length, scratch);
      stretches[i / kSquareStretch] = SumOfStretch(values, static_cast<int64_t>(length));
    });
  });
  double sum = 0;
  for (int64_t i = 0; i < num_stretches; ++i) sum += stretches[i];
  return sum;
}

}  // namespace thinwire
