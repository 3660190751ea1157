#include "compress/cpu/mean_values.h"

#include <algorithm>
#include <cmath>

#include "compress/bytes.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/mean_cells.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/range_header.h"
#include "compress/cpu/scan.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Values of one group while their cells are found.
class MeanGroup {
 public:
  MeanGroup(const float* values, size_t n, uint8_t* cells)
      : values_(values),
        n_(n),
        cells_(cells),
        exponent_(UnitExponent(FloatOf(LargestMagnitude(values, n)))),
        scale_(std::ldexp(1.0, exponent_)) {
    std::fill(cells, cells + n, 0);
    SumUp();
  }

  // Splits each cell at its mean: cell c becomes 2 c and 2 c + 1.
  void Split() {
    for (size_t i = 0; i < n_; ++i) {
      const uint8_t cell = cells_[i];
      cells_[i] = 2 * cell + IsAboveMean(sums_[cell], UnitsOf(values_[i], scale_));
    }
    SumUp();
  }

  float mean_of(int cell) const { return MeanOf(sums_[cell], exponent_); }

 private:
  void SumUp() {
    std::fill(std::begin(sums_), std::end(sums_), MeanCell{});
    for (size_t i = 0; i < n_; ++i) {
      sums_[cells_[i]].sum += UnitsOf(values_[i], scale_);
      ++sums_[cells_[i]].count;
    }
  }

  const float* values_;
  size_t n_;
  uint8_t* cells_;
  int exponent_;
  double scale_;
  MeanCell sums_[kMostCells];
};

// Encodes one group: its means, and codes of a byte each with the sign above the cell.
void EncodeGroup(const float* values, size_t n, uint32_t bits, uint8_t* means, uint8_t* codes) {
  MeanGroup group(values, n, codes);
  for (uint32_t bit = 1; bit < bits; ++bit) group.Split();
  for (int cell = 0; cell < CellsOf(bits); ++cell) StoreAs(group.mean_of(cell), means + 4 * cell);
  for (size_t i = 0; i < n; ++i) {
    if (values[i] < 0) codes[i] |= CellsOf(bits);
  }
}

}  // namespace

void WriteMeanValues(const float* values, size_t n, const CodecSpec& spec, int threads,
                     uint8_t* out) {
  static thread_local Scratch<uint8_t> memory;
  uint8_t* const codes = memory.Get(n + 64);
  const int64_t group = spec.group > 0 ? spec.group : std::max<int64_t>(n, 1);
  ForEachPart(Parts(n, threads, group), [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += group) {
      EncodeGroup(values + i, std::min(group, end - i), spec.bits,
                  out + i / group * 4 * CellsOf(spec.bits), codes + i);
    }
  });
  PackCodes(codes, n, spec.bits, out + MeansHeaderBytes(spec, n));
}

Error ReadMeanValues(const uint8_t* from, size_t n, const CodecSpec& spec, int threads,
                     float* values) {
  if (n == 0) return Error{};
  const uint8_t* const codes = from + MeansHeaderBytes(spec, n);
  RETURN_ERROR(CheckLastByte(from[ValueBytes(spec, n) - 1], spec, n));
  const int64_t group = spec.group > 0 ? spec.group : n;
  const int cells = CellsOf(spec.bits);
  ForEachPart(Parts(n, threads), [&](int, int64_t begin, int64_t end) {
    alignas(64) uint8_t block[kBlock];
    ForEachBlock(begin, end, [&](int64_t first, size_t count) {
      UnpackCodes(codes + first / 8 * spec.bits, count, spec.bits, block);
      for (size_t i = 0; i < count; ++i) {
        const int64_t mean = (first + static_cast<int64_t>(i)) / group * cells + block[i] % cells;
        const float magnitude = LoadAs<float>(from + 4 * mean);
        values[first + i] = block[i] < cells ? magnitude : -magnitude;
      }
    });
  });
  return Error{};
}

}  // namespace thinwire
