#include "compress/cpu/compare.h"

#include <algorithm>

#include "compress/cpu/blocks.h"

namespace thinwire {
namespace {

constexpr size_t kLanes = 8;

struct Lanes {
  double difference[kLanes] = {}, x[kLanes] = {}, y[kLanes] = {}, product[kLanes] = {};
};

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

}  // namespace

Error CpuCompare(const TensorView& x, const TensorView& y, CodecKernels::Sums* sums) {
  if (x.elements() != y.elements()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "compare: tensors of %lld and %lld elements, want equal shapes",
                     static_cast<long long>(x.elements()), static_cast<long long>(y.elements()));
  }
  alignas(64) float scratch_x[kBlock], scratch_y[kBlock];
  Lanes lanes;
  *sums = {};
  for (int64_t begin = 0; begin < x.elements(); begin += kBlock) {
    const size_t n = std::min<int64_t>(kBlock, x.elements() - begin);
    const float* a = ReadFloats(x, begin, n, scratch_x);
    const float* b = ReadFloats(y, begin, n, scratch_y);
    AddBlock(a, b, n, &lanes);
    sums->nonzeros_x += CountNonZeros(a, n);
    sums->nonzeros_y += CountNonZeros(b, n);
  }
  sums->difference = Total(lanes.difference);
  sums->x = Total(lanes.x);
  sums->y = Total(lanes.y);
  sums->product = Total(lanes.product);
  return Error{};
}

}  // namespace thinwire
