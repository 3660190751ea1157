#include "compress/cpu/blocks.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/parallel.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/nonzeros.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
constexpr size_t kLanes = hn::MaxLanes(F32());

// Writes a bit for each element of x[0, n), unused ones zero, and returns how many are set.
size_t FindNonzerosImpl(const float* HWY_RESTRICT x, size_t n, uint64_t* HWY_RESTRICT words) {
  const F32 d;
  size_t count = 0;
  for (size_t word = 0; word < n; word += 64) {
    uint64_t bits = 0;
    const size_t end = n < word + 64 ? n : word + 64;
    for (size_t i = word; i < end; i += kLanes) {
      PrefetchPage(x + i);
      const auto v = LoadPart(d, x + i, end - i);
      uint64_t lanes = 0;
      // Not Ne, which on some targets is false for a NaN.
      const auto nonzero = hn::Not(hn::Eq(v, hn::Zero(d)));
      hn::StoreMaskBits(d, nonzero, reinterpret_cast<uint8_t*>(&lanes));
      bits |= lanes << (i - word);
    }
    words[word / 64] = bits;
    count += __builtin_popcountll(bits);
  }
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(FindNonzerosImpl);

Error CpuFindNonzeros(const TensorView& x, uint64_t* words, int64_t* count, int threads) {
  static_assert(kBlock % 64 == 0, "a block fills whole words");
  *count = SumOfParts(Parts(x.elements(), threads), [&](int64_t begin, int64_t end) {
    alignas(64) float scratch[kBlock];
    size_t nonzeros = 0;
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      const float* from = ReadFloats(x, i, n, scratch);
      nonzeros += HWY_DYNAMIC_DISPATCH(FindNonzerosImpl)(from, n, words + i / 64);
    });
    return nonzeros;
  });
  return Error{};
}

}  // namespace thinwire
#endif  // HWY_ONCE
