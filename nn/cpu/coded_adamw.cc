#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "nn/adamw_factors.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"
#include "nn/moment_codes.h"

#ifndef THINWIRE_NN_CPU_CODED_ADAMW_CC_
#define THINWIRE_NN_CPU_CODED_ADAMW_CC_
namespace thinwire::cpu {

// Finds the code of a quotient by its upper bits: its sign, and exponent and 7 bits of the mantissa
// from 2^-24 up to 1. All quotients with the same upper bits have one of two neighbouring codes.
struct MomentTable {
  static constexpr int kBits = 16;  // lower ones, which are not looked at
  static constexpr int32_t kLeast = 0x33800000 >> kBits, kMost = 0x3F800000 >> kBits;
  static constexpr int32_t kEntries = kMost - kLeast + 1;  // of each sign, positive first

  float numbers[256];
  float middles[256];           // the last one is infinite
  int32_t lower[2 * kEntries];  // of the two codes

  explicit MomentTable(const MomentCode& code);
};

}  // namespace thinwire::cpu
#endif  // THINWIRE_NN_CPU_CODED_ADAMW_CC_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/coded_adamw.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/adamw-inl.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using cpu::MomentTable;
using IntTag = hn::RebindToSigned<FloatTag>;
using WordTag = hn::RebindToUnsigned<FloatTag>;
using ByteTag = hn::Rebind<uint8_t, FloatTag>;

// Expands the n codes of a block; behind them it writes zeros.
HWY_INLINE void ExpandBlock(const MomentTable& table, const uint8_t* codes, float scale, int64_t n,
                            float (&to)[kMomentBlock]) {
  const FloatTag d;
  HWY_ALIGN uint8_t all[kMomentBlock] = {};
  std::memcpy(all, codes, static_cast<size_t>(n));
  const FloatVec factor = hn::Set(d, scale);
  for (int64_t i = 0; i < kMomentBlock; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto index = hn::PromoteTo(IntTag(), hn::LoadU(ByteTag(), all + i));
    hn::StoreU(hn::Mul(hn::GatherIndex(d, table.numbers, index), factor), d, to + i);
  }
  std::fill(to + n, to + kMomentBlock, 0.0f);
}

HWY_INLINE uint32_t LargestKey(const float (&values)[kMomentBlock]) {
  const FloatTag d;
  const WordTag words;
  auto most = hn::Zero(words);
  for (int64_t i = 0; i < kMomentBlock; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto bits = hn::BitCast(words, hn::LoadU(d, values + i));
    const auto key = hn::Or(hn::ShiftLeft<1>(bits), hn::ShiftRight<31>(hn::Not(bits)));
    most = hn::Max(most, key);
  }
  HWY_ALIGN uint32_t lanes[HWY_MAX_BYTES / sizeof(uint32_t)];
  hn::Store(most, words, lanes);
  return *std::max_element(lanes, lanes + hn::Lanes(words));
}

// Writes the n codes of a block's first values, and their scale. Values behind them are zeros.
HWY_INLINE void QuantizeBlock(const MomentTable& table, const float (&values)[kMomentBlock],
                              int64_t n, float* scale, uint8_t* codes) {
  const FloatTag d;
  const IntTag ints;
  const uint32_t bits = MomentScale(LargestKey(values));
  std::memcpy(scale, &bits, sizeof(bits));
  HWY_ALIGN uint8_t all[kMomentBlock] = {};
  if (DividesMoments(bits)) {
    const FloatVec divisor = hn::Set(d, *scale);
    const auto least = hn::Set(ints, MomentTable::kLeast), zero = hn::Zero(ints);
    const auto of_negatives = hn::Set(ints, MomentTable::kEntries), one = hn::Set(ints, 1);
    for (int64_t i = 0; i < kMomentBlock; i += static_cast<int64_t>(hn::Lanes(d))) {
      const FloatVec quotient = hn::Div(hn::LoadU(d, values + i), divisor);
      const auto upper = hn::ShiftRight<MomentTable::kBits>(hn::BitCast(ints, hn::Abs(quotient)));
      auto entry = hn::Max(hn::Sub(upper, least), zero);
      const auto is_negative = hn::Lt(hn::BitCast(ints, quotient), zero);
      entry = hn::Add(entry, hn::IfThenElse(is_negative, of_negatives, zero));
      const auto lower = hn::GatherIndex(ints, table.lower, entry);
      const auto middle = hn::GatherIndex(d, table.middles, lower);
      const auto is_upper = hn::RebindMask(ints, hn::Gt(quotient, middle));
      const auto code = hn::Add(lower, hn::IfThenElse(is_upper, one, zero));
      hn::StoreU(hn::DemoteTo(ByteTag(), code), ByteTag(), all + i);
    }
  }
  std::memcpy(codes, all, static_cast<size_t>(n));
}

// Updates blocks [begin, end) of a parameter.
void CodedAdamWBlocks(const AdamWUpdate& u, const AdamWFactors& f, const AdamWParameter& parameter,
                      const MomentTable& of_mean, const MomentTable& of_square, int64_t begin,
                      int64_t end) {
  HWY_ALIGN float mean[kMomentBlock], square[kMomentBlock];
  const CodedMean &means = parameter.coded_mean, &squares = parameter.coded_square;
  AdamWParameter block;
  block.mean = mean;
  block.square = square;
  block.weight_decay = parameter.weight_decay;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t first = b * kMomentBlock, n = std::min(kMomentBlock, parameter.n - first);
    ExpandBlock(of_mean, means.codes + first, means.scales[b], n, mean);
    ExpandBlock(of_square, squares.codes + first, squares.scales[b], n, square);
    block.value = parameter.value + first;
    block.gradient = parameter.gradient + first;
    UpdateByAdamW(u, f, block, 0, n);
    QuantizeBlock(of_mean, mean, n, means.scales + b, means.codes + first);
    QuantizeBlock(of_square, square, n, squares.scales + b, squares.codes + first);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(CodedAdamWBlocks);

namespace cpu {
namespace {

constexpr int64_t kGrain = 16;  // blocks; with fewer, one thread is faster

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

MomentTable::MomentTable(const MomentCode& code) {
  std::copy(std::begin(code.numbers), std::end(code.numbers), numbers);
  std::copy(std::begin(code.middles), std::end(code.middles), middles);
  middles[255] = std::numeric_limits<float>::infinity();
  for (int32_t i = 0; i < kEntries; ++i) {
    const auto least = static_cast<uint32_t>(kLeast + i) << kBits;
    const uint32_t greatest = least | ((1U << kBits) - 1);
    // The first entries have zero in them, too.
    lower[i] = NearestMoment(code.middles, i == 0 ? 0 : FloatOf(least));
    lower[kEntries + i] = NearestMoment(code.middles, -FloatOf(greatest));
  }
}

void CodedAdamW(int threads, const AdamWUpdate& update, const AdamWFactors& factors,
                const AdamWParameter& parameter) {
  static const MomentTable of_mean(kSignedMoments), of_square(kUnsignedMoments);
  ParallelRange(threads, NumMomentBlocks(parameter.n), kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(CodedAdamWBlocks)(update, factors, parameter, of_mean, of_square, i, end);
  });
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
