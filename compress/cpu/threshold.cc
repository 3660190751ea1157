#include "compress/cpu/threshold.h"

#include <algorithm>
#include <cmath>

#include "compress/cpu/compact.h"
#include "compress/cpu/entries.h"
#include "compress/cpu/half.h"
#include "compress/cpu/kept.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/scratch.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// The order of the sum is part of the payload's definition (docs/compression.md): sixteen lanes of
// each run of 4096 elements, so that vectors and thread blocks can follow it.
constexpr int64_t kRun = 4096;
constexpr int64_t kLanes = 16;

double SumOfRun(const float* x, int64_t n) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (; i < n; ++i) lanes[i % kLanes] += double{x[i]} * double{x[i]};
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double SumOfSquares(const float* x, int64_t n, int threads) {
  static thread_local Scratch<double> memory;
  const int64_t num_runs = (n + kRun - 1) / kRun;
  double* const runs = memory.Get(num_runs);
  ForEachPart(Parts(n, threads, kRun), [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kRun) {
      runs[i / kRun] = SumOfRun(x + i, std::min(kRun, end - i));
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < num_runs; ++i) sum += runs[i];
  return sum;
}

// Of what the threshold is a multiple. `count`: elements of x[0, n) that are not there as zeros.
double UnitOf(const float* x, int64_t n, int64_t count, uint32_t largest, RelativeTo relative_to,
              int threads) {
  switch (relative_to) {
    case RelativeTo::kAbsolute:
      return 1;
    case RelativeTo::kRms:
      return std::sqrt(SumOfSquares(x, n, threads) / static_cast<double>(count));
    case RelativeTo::kMax:
      return FloatOf(largest);
  }
  return 1;
}

// Bits of the least fp32 magnitude that is at least `threshold` and not zero; of infinity if no
// finite one is.
uint32_t LeastMagnitude(double threshold) {
  if (threshold > double{FloatOf(kInfinityBits - 1)}) return kInfinityBits;
  const float nearest = static_cast<float>(threshold);
  const uint32_t bits = BitsOf(nearest) + (double{nearest} < threshold);
  return std::max(bits, 1u);
}

}  // namespace

Error CpuThresholdEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                         uint8_t* payload, size_t capacity, size_t* bytes, int threads) {
  const int64_t n = x.elements();
  const Error error = CheckElements(spec, n);
  if (!error.ok()) return error;
  const float* values = SupportedFloats(x, context.support, threads);
  const uint32_t largest = LargestMagnitude(values, n, threads);
  if (largest >= kInfinityBits) return NonFiniteError(Name(spec.kind), x);
  Kept kept;
  if (largest > 0) {
    const int64_t count = context.support == nullptr ? n : context.support->count;
    const double unit = UnitOf(values, n, count, largest, spec.relative_to, threads);
    kept = KeepAtLeast(values, n, LeastMagnitude(spec.threshold * unit), threads);
  }
  return WriteEntries(&kept, n, spec, context, payload, capacity, bytes, threads);
}

}  // namespace thinwire
