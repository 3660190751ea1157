#include <cassert>
#include <cstdint>
#include <cstring>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/expand_weights.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Multiplies n values by a scale; they are rounded once, and once more if they become bf16.
template <typename To>
HWY_INLINE void Scale(const float* from, float scale, int64_t n, To* to) {
  const FloatTag d;
  const FloatVec factor = hn::Set(d, scale);
  ForEachVector(n, [&](const auto& access, int64_t i) HWY_ATTR {
    access.Store(hn::Mul(access.Load(d, from + i), factor), d, to + i);
  });
}

// Expands n neighbours with one scale, up to a block of them at a time.
template <typename To>
void ExpandInt8(const int8_t* codes, float scale, int64_t n, To* to) {
  const FloatTag d;
  const hn::Rebind<int8_t, FloatTag> d8;
  const hn::Rebind<int32_t, FloatTag> d32;
  const FloatVec factor = hn::Set(d, scale);
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::PromoteTo(d32, hn::LoadU(d8, codes + i));
    StoreFloats(hn::Mul(hn::ConvertTo(d, wide), factor), d, to + i);
  }
  float rest[HWY_MAX_BYTES / sizeof(float)];
  for (int64_t j = i; j < n; ++j) rest[j - i] = static_cast<float>(codes[j]);
  Scale(rest, scale, n - i, to + i);
}

// Looks up both levels of a byte at once. `pairs` has them for each byte.
template <typename To>
void ExpandNF4Block(const float (&pairs)[256][2], const uint8_t* codes, float scale, To* to) {
  HWY_ALIGN float levels[kNF4Block];
  for (int64_t i = 0; i < kNF4Block / 2; ++i) {
    std::memcpy(levels + 2 * i, pairs[codes[i]], sizeof(pairs[0]));
  }
  Scale(levels, scale, kNF4Block, to);
}

// Expands rows [begin, end) of bytes, or blocks of four bits.
void ExpandInt8Rows(const WeightExpansion& a, int64_t begin, int64_t end) {
  const int64_t columns = a.weights.dims[1];
  WithType(a.weights.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (int64_t row = begin; row < end; ++row) {
      ExpandInt8(static_cast<const int8_t*>(a.codes) + row * columns, a.scales[row], columns,
                 a.weights.as<T>() + row * columns);
    }
  });
}

void ExpandNF4Blocks(const WeightExpansion& a, const float (&pairs)[256][2], int64_t begin,
                     int64_t end) {
  WithType(a.weights.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (int64_t block = begin; block < end; ++block) {
      ExpandNF4Block(pairs, static_cast<const uint8_t*>(a.codes) + block * kNF4Block / 2,
                     a.scales[block], a.weights.as<T>() + block * kNF4Block);
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::cpu {

HWY_EXPORT(ExpandInt8Rows);
HWY_EXPORT(ExpandNF4Blocks);

namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements; with fewer, one thread is faster

// The levels of both codes of each byte.
struct LevelPairs {
  float of[256][2] = {};

  LevelPairs() {
    const NF4Levels levels;
    for (int byte = 0; byte < 256; ++byte) {
      of[byte][0] = levels.of[byte >> 4];
      of[byte][1] = levels.of[byte & 0xF];
    }
  }
};

}  // namespace

Error Kernels::ExpandWeights(const WeightExpansion& a) {
  const int64_t rows = a.weights.dims[0], columns = a.weights.dims[1];
  switch (a.format) {
    case WeightFormat::kBF16:
      return Convert(ViewOf(a.codes, DType::kBF16, {rows, columns}), a.weights);
    case WeightFormat::kInt8:
      ParallelRange(threads_, rows, kGrain / columns, [&](int64_t begin, int64_t end) {
        HWY_DYNAMIC_DISPATCH(ExpandInt8Rows)(a, begin, end);
      });
      return Error{};
    case WeightFormat::kNF4: {
      static const LevelPairs pairs;
      ParallelRange(threads_, rows * columns / kNF4Block, kGrain / kNF4Block,
                    [&](int64_t begin, int64_t end) {
                      HWY_DYNAMIC_DISPATCH(ExpandNF4Blocks)(a, pairs.of, begin, end);
                    });
      return Error{};
    }
    case WeightFormat::kFP32:
      break;
  }
  assert(false);  // nobody expands numbers
  return Error{};
}

}  // namespace thinwire::cpu
#endif  // HWY_ONCE
