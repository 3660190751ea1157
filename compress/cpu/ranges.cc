#include "compress/cpu/ranges.h"

#include <algorithm>

#include "compress/bytes.h"
#include "compress/cpu/blocks.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/range_header.h"
#include "compress/cpu/scan.h"
#include "compress/cpu/segments.h"
#include "compress/half.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Returns the range of x[begin, end).
ValueRange RangeOf(const TensorView& x, int64_t begin, int64_t end) {
  alignas(64) float scratch[kBlock];
  // fp32 is read in place, so only bf16 needs blocks.
  const int64_t step = x.dtype == DType::kF32 ? end - begin : kBlock;
  ValueRange range;
  for (int64_t i = begin; i < end; i += step) {
    const size_t n = std::min(step, end - i);
    AddToRange(ReadFloats(x, i, n, scratch), n, &range);
  }
  return range;
}

// Returns the range of x[begin, end), found by all threads.
ValueRange RangeOfLargeScope(const TensorView& x, int64_t begin, int64_t end, int threads) {
  const Parts parts(end - begin, threads);
  ValueRange ranges[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t first, int64_t last) {
    ranges[part] = RangeOf(x, begin + first, begin + last);
  });
  for (int part = 1; part < parts.count(); ++part) {
    ranges[0] = {std::min(ranges[0].min, ranges[part].min),
                 std::max(ranges[0].max, ranges[part].max),
                 std::max(ranges[0].magnitude, ranges[part].magnitude)};
  }
  return ranges[0];
}

// Finds the minimum and maximum of every scope. Returns false if a value is not finite.
bool MeasureContiguous(const TensorView& x, const Scopes& scopes, int threads, MinMax* out) {
  const bool splits_scopes = SplitsScopes(scopes, threads);
  const Parts parts(scopes.total, splits_scopes ? 1 : threads,
                    std::max<int64_t>(scopes.elements, 1));
  const uint32_t magnitude = LargestOfParts(parts, [&](int64_t first, int64_t last) {
    uint32_t largest = 0;
    for (int64_t begin = first; begin < last; begin += scopes.elements) {
      const int64_t end = std::min(begin + scopes.elements, last);
      const ValueRange range =
          splits_scopes ? RangeOfLargeScope(x, begin, end, threads) : RangeOf(x, begin, end);
      out[begin / scopes.elements] = {range.min, range.max};
      largest = std::max(largest, range.magnitude);
    }
    return largest;
  });
  return magnitude < kInfinityBits;
}

// Adds elements [begin, end) to one period's minima and maxima. Returns the largest magnitude's
// bits.
uint32_t AddPeriods(const TensorView& x, int64_t begin, int64_t end, int64_t period, float* min,
                    float* max) {
  std::fill(min, min + period, ValueRange().min);
  std::fill(max, max + period, ValueRange().max);
  uint32_t magnitude = 0;
  ReadBlocks(x, begin, end, [&](int64_t block, size_t n, const float* values) {
    ForEachSegment(block, n, period, [&](size_t offset, size_t length, int64_t, int64_t phase) {
      magnitude =
          std::max(magnitude, AddToRanges(values + offset, length, min + phase, max + phase));
    });
  });
  return magnitude;
}

bool MeasureStrided(const TensorView& x, const Scopes& scopes, int threads, MinMax* out) {
  static thread_local Scratch<float> memory;
  const int64_t period = PeriodOf(scopes);
  const Parts parts(scopes.total, threads);
  float* const minima = memory.Get(2 * period * parts.count());  // of each part, then the maxima
  float* const maxima = minima + period * parts.count();
  uint32_t magnitudes[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    magnitudes[part] =
        AddPeriods(x, begin, end, period, minima + part * period, maxima + part * period);
  });
  for (int64_t c = 0; c < scopes.count; ++c) {
    out[c] = {minima[c], maxima[c]};
    for (int64_t i = c + scopes.count; i < period * parts.count(); i += scopes.count) {
      out[c] = {std::min(out[c].min, minima[i]), std::max(out[c].max, maxima[i])};
    }
  }
  return *std::max_element(magnitudes, magnitudes + parts.count()) < kInfinityBits;
}

Error WriteMinMax(const CodecSpec& spec, const Scopes& scopes, const MinMax* measured,
                  uint8_t* header) {
  for (int64_t s = 0; s < scopes.count; ++s) {
    const MinMax& m = measured[s];
    const DecodeLine line = MinMaxLine(m, spec.zero, GridOf(spec).divisor);
    if (!IsUsable(line)) return RangeOverflow(m);
    StoreAs(line.offset, header + 8 * s);
    StoreAs(line.range, header + 8 * s + 4);
  }
  return Error{};
}

void WriteMaxAbs(const Scopes& scopes, const MinMax* measured, uint8_t* header) {
  for (int64_t s = 0; s < scopes.count; ++s) StoreAs(LargestOf(measured[s]), header + 4 * s);
}

void WriteFixedPoint(const Scopes& scopes, const MinMax* measured, uint8_t* header,
                     bool* constant) {
  float largest = 0;
  *constant = scopes.count > 0;
  for (int64_t s = 0; s < scopes.count; ++s) {
    largest = std::max(largest, LargestOf(measured[s]));
    *constant &= measured[s].min == measured[0].min && measured[s].max == measured[0].min;
  }
  if (*constant) {
    WriteConstant(measured[0].min + 0.0f, header);
    return;
  }
  const int16_t exponent = PreScaleFor(largest);
  StoreAs(exponent, header);
  for (int64_t s = 0; s < scopes.count; ++s) {
    StoreAs(FixedPointScale(measured[s], exponent), header + 2 + 2 * s);
  }
}

}  // namespace

Error WriteRanges(const TensorView& x, const CodecSpec& spec, const Scopes& scopes, uint8_t* header,
                  bool* constant, int threads) {
  static thread_local Scratch<MinMax> memory;
  MinMax* measured = memory.Get(scopes.count);
  *constant = false;
  const bool finite = scopes.strided ? MeasureStrided(x, scopes, threads, measured)
                                     : MeasureContiguous(x, scopes, threads, measured);
  if (!finite) return NonFiniteError("uniform", x);
  switch (spec.range) {
    case Range::kMinMax:
      return WriteMinMax(spec, scopes, measured, header);
    case Range::kMaxAbs:
      WriteMaxAbs(scopes, measured, header);
      return Error{};
    case Range::kFixedPoint:
      WriteFixedPoint(scopes, measured, header, constant);
      return Error{};
  }
  return Error{};
}

}  // namespace thinwire
