#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/parallel.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

constexpr size_t kLanes = 8;

struct Lanes {
  double difference[kLanes] = {}, x[kLanes] = {}, y[kLanes] = {}, product[kLanes] = {};
};

// Adds a block's sums, element i in lane i % kLanes. The order is fixed, and lanes let the compiler
// use vectors.
void AddBlock(const float* x, const float* y, size_t n, Lanes* lanes) {
  for (size_t i = 0; i < n; ++i) {
    const size_t lane = i % kLanes;
    const double a = x[i], b = y[i], d = a - b;
    lanes->difference[lane] += d * d;
    lanes->x[lane] += a * a;
    lanes->y[lane] += b * b;
    lanes->product[lane] += a * b;
  }
}

int64_t CountNonZeros(const float* x, size_t n) { return n - std::count(x, x + n, 0.0f); }

double Total(const double (&lanes)[kLanes]) {
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

using Sums = CodecKernels::Sums;

Sums SumsOfStretch(const TensorView& x, const TensorView& y, int64_t begin, int64_t end) {
  alignas(64) float scratch_x[kBlock], scratch_y[kBlock];
  Lanes lanes;
  Sums sums;
  ForEachBlock(begin, end, [&](int64_t i, size_t n) {
    const float* a = ReadFloats(x, i, n, scratch_x);
    const float* b = ReadFloats(y, i, n, scratch_y);
    AddBlock(a, b, n, &lanes);
    sums.nonzeros_x += CountNonZeros(a, n);
    sums.nonzeros_y += CountNonZeros(b, n);
  });
  sums.difference = Total(lanes.difference);
  sums.x = Total(lanes.x);
  sums.y = Total(lanes.y);
  sums.product = Total(lanes.product);
  return sums;
}

void Add(const Sums& stretch, Sums* sums) {
  sums->difference += stretch.difference;
  sums->x += stretch.x;
  sums->y += stretch.y;
  sums->product += stretch.product;
  sums->nonzeros_x += stretch.nonzeros_x;
  sums->nonzeros_y += stretch.nonzeros_y;
}

}  // namespace

Error CpuKernels::Compare(const TensorView& x, const TensorView& y, Sums* sums) {
  const int64_t total = x.elements();
  RETURN_ERROR(CheckCompared(total, y.elements()));
  constexpr int64_t kStretch = kMostOfOneThread;
  static thread_local Scratch<Sums> memory;
  const int64_t num_stretches = (total + kStretch - 1) / kStretch;
  Sums* const stretches = memory.Get(num_stretches);
  ForEachPart(Parts(total, threads_, kStretch), [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kStretch) {
      stretches[i / kStretch] = SumsOfStretch(x, y, i, std::min(i + kStretch, end));
    }
  });
  *sums = {};
  for (int64_t i = 0; i < num_stretches; ++i) Add(stretches[i], sums);
  return Error{};
}

}  // namespace thinwire
