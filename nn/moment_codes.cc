#include "nn/moment_codes.h"

#include <algorithm>
#include <cstring>

namespace thinwire {
namespace {

uint32_t MomentBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

void QuantizeMoments(const MomentCode& code, const float* values, int64_t n, const CodedMean& to) {
  for (int64_t block = 0; block < NumMomentBlocks(n); ++block) {
    const int64_t begin = block * kMomentBlock, end = std::min(n, begin + kMomentBlock);
    uint32_t key = 0;
    for (int64_t i = begin; i < end; ++i) key = std::max(key, MomentKey(MomentBits(values[i])));
    const uint32_t bits = MomentScale(key);
    float scale;
    std::memcpy(&scale, &bits, sizeof(scale));
    to.scales[block] = scale;
    for (int64_t i = begin; i < end; ++i) {
      to.codes[i] = DividesMoments(bits) ? NearestMoment(code.middles, values[i] / scale) : 0;
    }
  }
}

void ExpandMoments(const MomentCode& code, const CodedMean& from, int64_t n, float* values) {
  for (int64_t i = 0; i < n; ++i) {
    values[i] = code.numbers[from.codes[i]] * from.scales[i / kMomentBlock];
  }
}

}  // namespace thinwire
