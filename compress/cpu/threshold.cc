#include "compress/cpu/threshold.h"

#include <algorithm>
#include <cmath>

#include "compress/cpu/compact.h"
#include "compress/cpu/entries.h"
#include "compress/cpu/entries_header.h"
#include "compress/cpu/half.h"
#include "compress/cpu/kept.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/scratch.h"
#include "compress/cpu/threshold_unit.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

double SumOfStretch(const float* x, int64_t n) {
  double lanes[kThresholdLanes] = {};
  int64_t i = 0;
  for (; i + kThresholdLanes <= n; i += kThresholdLanes) {
    for (int64_t lane = 0; lane < kThresholdLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (; i < n; ++i) lanes[i % kThresholdLanes] += double{x[i]} * double{x[i]};
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double SumOfSquares(const float* x, int64_t n, int threads) {
  static thread_local Scratch<double> memory;
  const int64_t num_stretches = (n + kThresholdStretch - 1) / kThresholdStretch;
  double* const stretches = memory.Get(num_stretches);
  ForEachPart(Parts(n, threads, kThresholdStretch), [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kThresholdStretch) {
      stretches[i / kThresholdStretch] = SumOfStretch(x + i, std::min(kThresholdStretch, end - i));
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < num_stretches; ++i) sum += stretches[i];
  return sum;
}

// The number that the threshold is a multiple of. `count`: elements of x[0, n) that are not there
// as zeros.
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

}  // namespace

Error CpuThresholdEncode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                         const PayloadBuffer& payload, int threads) {
  const int64_t n = x.elements();
  RETURN_ERROR(CheckElements(spec, n));
  const float* values = SupportedFloats(x, context.support, threads);
  const uint32_t largest = LargestMagnitude(values, n, threads);
  if (largest >= kInfinityBits) return NonFiniteError(Name(spec.kind), x, context.support);
  Kept kept;
  if (largest > 0) {
    const int64_t count = context.support == nullptr ? n : context.support->count;
    const double unit = UnitOf(values, n, count, largest, spec.relative_to, threads);
    kept = KeepAtLeast(values, n, LeastMagnitude(spec.threshold * unit), threads);
  }
  return WriteEntries(&kept, n, spec, context, payload, threads);
}

}  // namespace thinwire
