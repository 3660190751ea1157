#include <algorithm>
#include <cmath>

#include "compress/cpu/codecs.h"
#include "compress/cpu/entries.h"
#include "compress/cpu/entries_header.h"
#include "compress/cpu/kept.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/sum_of_squares.h"
#include "compress/cpu/threshold_unit.h"
#include "compress/half.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// Returns the number of which the threshold is a multiple. `count` is the number of elements of
// x[0, n) that are not just zeros for lack of support.
double UnitOf(const float* x, int64_t n, int64_t count, uint32_t largest, RelativeTo relative_to,
              int threads) {
  switch (relative_to) {
    case RelativeTo::kAbsolute:
      return 1;
    case RelativeTo::kRms:
      return std::sqrt(SumOfSquares(ViewOf(x, DType::kF32, {n}), 0, n, threads) /
                       static_cast<double>(count));
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
