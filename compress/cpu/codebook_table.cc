#include "compress/cpu/codebook_table.h"

#include <cassert>

#include "compress/half.h"

namespace thinwire {
namespace {

// Returns the bits of the last float for which `rank` is nearer than the next rank; ties go by the
// sign.
uint32_t LimitBits(const std::array<float, 256>& values, int rank, bool negative) {
  const float* magnitudes = &values[kZeroCode];
  // This is exact: neighbours are so close that their sum fits fp64.
  const double middle = (static_cast<double>(magnitudes[rank]) + magnitudes[rank + 1]) / 2;
  uint32_t bits = BitsOf(static_cast<float>(middle));
  while (FloatOf(bits) > middle || (negative && FloatOf(bits) == middle)) --bits;
  return bits;
}

CodebookTable NewTable() {
  const std::array<float, 256> values = CodebookValues();
  CodebookTable table;
  for (bool negative : {false, true}) {
    const int most = negative ? 127 : 128;  // -1 has no entry
    int rank = 0;
    for (int32_t b = 0; b < kCodebookBuckets; ++b) {
      const uint32_t end = static_cast<uint32_t>(kCodebookFirstBucket + b + 1) << kCodebookLowBits;
      int32_t entry = rank << kCodebookLowBits;
      if (rank < most && LimitBits(values, rank, negative) < end) {
        const uint32_t limit = LimitBits(values, rank++, negative);
        entry += kCodebookLowMask - static_cast<int32_t>(limit & kCodebookLowMask);
        assert(rank == most || LimitBits(values, rank, negative) >= end);
      }
      table.entries[(negative ? kCodebookBuckets : 0) + b] = entry;
    }
  }
  return table;
}

}  // namespace

std::array<float, 256> CodebookValues() {
  std::array<float, 256> values;
  values[kZeroCode] = 0;
  values[255] = 1;
  int rank = 1;
  float power_of_ten = 1e7f;
  for (int i = 0; i < 7; ++i, power_of_ten /= 10) {
    const float parts = static_cast<float>(2 << i);
    for (int j = 0; j < 1 << i; ++j, ++rank) {
      const float value = (parts + static_cast<float>(9 * (2 * j + 1))) / (parts * power_of_ten);
      values[kZeroCode + rank] = value;
      values[kZeroCode - rank] = -value;
    }
  }
  return values;
}

const CodebookTable& TheCodebookTable() {
  static const CodebookTable table = NewTable();
  return table;
}

}  // namespace thinwire
