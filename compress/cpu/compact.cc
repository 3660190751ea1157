#include <algorithm>
#include <cstring>

#include "compress/cpu/blocks.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/parallel.h"
#include "compress/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/compact.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using F32x4 = hn::FixedTag<float, 4>;
using Bytes16 = hn::FixedTag<uint8_t, 16>;
constexpr size_t kLanes = hn::MaxLanes(F32());

// Writes the elements of x[0, n) whose bits are set, and returns their number. `out` has memory for
// kLanes more.
size_t CompactImpl(const float* HWY_RESTRICT x, size_t n, const uint64_t* HWY_RESTRICT words,
                   float* HWY_RESTRICT out) {
  size_t count = 0;
  for (size_t word = 0; word < n; word += 64) {
    uint64_t bits = words[word / 64];
    for (size_t i = word; bits != 0; i += kLanes, bits >>= kLanes) {
      const auto v = LoadPart(F32(), x + i, n - i);
      count += StoreCompressed(v, MaskOfBits(F32(), bits), F32(), out + count);
    }
  }
  return count;
}

// Shuffle table: for every mask of four elements, it says from which byte of the next compact
// elements each byte comes; 0x80 gives zero.
struct ExpandTable {
  ExpandTable() {
    for (int mask = 0; mask < 16; ++mask) {
      int next = 0;
      for (int lane = 0; lane < 4; ++lane) {
        const bool is_set = (mask >> lane) & 1;
        for (int b = 0; b < 4; ++b) {
          bytes[mask][4 * lane + b] = static_cast<uint8_t>(is_set ? 4 * next + b : 0x80);
        }
        next += is_set;
      }
    }
  }
  alignas(16) uint8_t bytes[16][16];
};

// Overwrites x[0, n rounded up to 64): the next element of `compact` where a bit is set, zero
// elsewhere. Reads three more elements of `compact`.
void ExpandImpl(const float* HWY_RESTRICT compact, const uint64_t* HWY_RESTRICT words, size_t n,
                float* HWY_RESTRICT x) {
  static const ExpandTable table;
  const F32x4 d;
  const Bytes16 bytes;
  for (size_t word = 0; word < n; word += 64) {
    uint64_t bits = words[word / 64];
    // Four bits choose a row of the table, which spreads the next compact elements over four lanes.
    // It consumes as many of them as bits are set.
    for (size_t i = word; i < word + 64; i += 4, bits >>= 4) {
      const auto next = hn::BitCast(bytes, hn::LoadU(d, compact));
      const auto from = hn::Load(bytes, table.bytes[bits & 15]);
      hn::StoreU(hn::BitCast(d, hn::TableLookupBytesOr0(next, from)), d, x + i);
      compact += __builtin_popcountll(bits & 15);
    }
  }
}

void KeepSupportedImpl(const uint64_t* HWY_RESTRICT words, size_t n, float* HWY_RESTRICT x) {
  for (size_t word = 0; word < n; word += 64) {
    uint64_t bits = words[word / 64];
    const size_t end = n < word + 64 ? n : word + 64;
    for (size_t i = word; i < end; i += kLanes, bits >>= kLanes) {
      const auto kept =
          hn::IfThenElseZero(MaskOfBits(F32(), bits), LoadPart(F32(), x + i, end - i));
      StorePart(kept, F32(), x + i, end - i);
    }
  }
}

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

HWY_EXPORT(CompactImpl);
HWY_EXPORT(ExpandImpl);
HWY_EXPORT(KeepSupportedImpl);
HWY_EXPORT(FindNonzerosImpl);

namespace {

static_assert(kBlock % 64 == 0, "a block is of whole words");
constexpr size_t kSlack = 64;  // room for whole vectors at the end of a block

size_t CountSetBits(const uint64_t* words, size_t n) {
  size_t count = 0;
  for (size_t word = 0; word < n; word += 64) count += __builtin_popcountll(words[word / 64]);
  return count;
}

// Number of set bits before each part.
struct PartOffsets {
  PartOffsets(const uint64_t* words, const Parts& parts) {
    if (parts.count() == 1) return;
    ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
      if (part + 1 < parts.count()) at[part + 1] = CountSetBits(words + begin / 64, end - begin);
    });
    for (int part = 1; part < parts.count(); ++part) at[part] += at[part - 1];
  }
  int64_t at[Parts::kMost] = {};
};

// Writes elements [begin, begin + n) of a tensor, in its type.
void WriteFloats(const float* from, size_t n, int64_t begin, const TensorView& x) {
  if (x.dtype == DType::kF32) {
    std::memcpy(static_cast<float*>(x.data) + begin, from, 4 * n);
  } else {
    FinishFloats(x, begin, n, from);
  }
}

void KeepSupportedOf(const uint64_t* words, size_t n, float* x) {
  HWY_DYNAMIC_DISPATCH(KeepSupportedImpl)(words, n, x);
}

}  // namespace

Error CpuKernels::Compact(const TensorView& x, const SupportView& support,
                          const TensorView& compact) {
  const Parts parts(support.elements, threads_);
  const PartOffsets offsets(support.words, parts);
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    alignas(64) float block[kBlock + kSlack];
    int64_t count = offsets.at[part];
    ReadBlocks(x, begin, end, [&](int64_t i, size_t n, const float* from) {
      const size_t kept = HWY_DYNAMIC_DISPATCH(CompactImpl)(from, n, support.words + i / 64, block);
      if (kept > 0) WriteFloats(block, kept, count, compact);
      count += kept;
    });
  });
  return Error{};
}

Error CpuKernels::Expand(const TensorView& compact, const SupportView& support,
                         const TensorView& x) {
  const Parts parts(support.elements, threads_);
  const PartOffsets offsets(support.words, parts);
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    alignas(64) float block[kBlock + kSlack], out[kBlock], scratch[kBlock];
    int64_t count = offsets.at[part];
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      const uint64_t* words = support.words + i / 64;
      const size_t kept = CountSetBits(words, n);
      if (kept > 0) std::memcpy(block, ReadFloats(compact, count, kept, scratch), 4 * kept);
      count += kept;
      const bool in_place = n == kBlock && x.dtype == DType::kF32;
      float* to = in_place ? static_cast<float*>(x.data) + i : out;
      HWY_DYNAMIC_DISPATCH(ExpandImpl)(block, words, n, to);
      if (!in_place) WriteFloats(out, n, i, x);
    });
  });
  return Error{};
}

const float* SupportedFloats(const TensorView& x, const SupportView* support, int threads) {
  static thread_local Scratch<float> memory;
  const int64_t total = x.elements();
  if (support == nullptr && x.dtype == DType::kF32) return static_cast<const float*>(x.data);
  float* const copy = memory.Get(total);
  ForEachPart(Parts(total, threads), [&](int, int64_t begin, int64_t end) {
    const size_t n = end - begin;
    const float* from = ReadFloats(x, begin, n, copy + begin);
    if (n > 0 && from != copy + begin) std::memcpy(copy + begin, from, 4 * n);
    if (support != nullptr) KeepSupportedOf(support->words + begin / 64, n, copy + begin);
  });
  return copy;
}

void KeepSupported(const SupportView& support, int threads, float* x) {
  ForEachPart(Parts(support.elements, threads), [&](int, int64_t begin, int64_t end) {
    KeepSupportedOf(support.words + begin / 64, end - begin, x + begin);
  });
}

Error CpuKernels::FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) {
  *count = SumOfParts(Parts(x.elements(), threads_), [&](int64_t begin, int64_t end) {
    size_t nonzeros = 0;
    ReadBlocks(x, begin, end, [&](int64_t i, size_t n, const float* from) {
      nonzeros += HWY_DYNAMIC_DISPATCH(FindNonzerosImpl)(from, n, words + i / 64);
    });
    return nonzeros;
  });
  return Error{};
}

}  // namespace thinwire
#endif  // HWY_ONCE
