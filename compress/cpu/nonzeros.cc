#include "compress/cpu/nonzeros.h"

#include <algorithm>

#include "compress/cpu/blocks.h"

namespace thinwire {

Error CpuFindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) {
  alignas(64) float scratch[kBlock];
  static_assert(kBlock % 64 == 0, "a block fills whole words");
  const int64_t total = x.elements();
  *count = 0;
  for (int64_t begin = 0; begin < total; begin += kBlock) {
    const int64_t n = std::min<int64_t>(kBlock, total - begin);
    const float* from = ReadFloats(x, begin, n, scratch);
    for (int64_t word = 0; word < n; word += 64) {
      uint64_t bits = 0;
      const int64_t in_word = std::min<int64_t>(64, n - word);
      for (int64_t i = 0; i < in_word; ++i) bits |= uint64_t{from[word + i] != 0} << i;
      words[(begin + word) / 64] = bits;
      *count += __builtin_popcountll(bits);
    }
  }
  return Error{};
}

}  // namespace thinwire
