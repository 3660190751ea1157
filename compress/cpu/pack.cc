#include <cstring>

#include "compress/bytes.h"
#include "compress/cpu/loops.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/pack.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

// Eight codes are one 64-bit word: neighbours are pushed together in three steps, of 8, 16 and
// 32 bits, until the low 8 b bits of the word hold them all.
HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using U64 = hn::ScalableTag<uint64_t>;
using U32 = hn::Repartition<uint32_t, U64>;
using U16 = hn::Repartition<uint16_t, U64>;
constexpr size_t kWords = hn::MaxLanes(U64());

// Eight codes of a byte each become 8 b bits: neighbours are joined into pairs, pairs into fours
// and fours into eights, each time by shifting the upper half down onto the lower half's end.
void PackImpl(uint8_t* HWY_RESTRICT codes, size_t num_words, uint32_t bits) {
  const int b = static_cast<int>(bits);
  const auto low8 = hn::Set(U16(), 0xFF);
  const auto low16 = hn::Set(U32(), 0xFFFF);
  const auto low32 = hn::Set(U64(), 0xFFFFFFFF);
  uint64_t* words = reinterpret_cast<uint64_t*>(codes);
  for (size_t i = 0; i < num_words; i += kWords) {
    const auto v = hn::BitCast(U16(), hn::LoadU(U64(), words + i));
    const auto pairs =
        hn::BitCast(U32(), hn::Or(hn::And(v, low8), hn::ShiftLeftSame(hn::ShiftRight<8>(v), b)));
    const auto fours = hn::BitCast(
        U64(), hn::Or(hn::And(pairs, low16), hn::ShiftLeftSame(hn::ShiftRight<16>(pairs), 2 * b)));
    const auto eights =
        hn::Or(hn::And(fours, low32), hn::ShiftLeftSame(hn::ShiftRight<32>(fours), 4 * b));
    hn::StoreU(eights, U64(), words + i);
  }
}

// The inverse: eights are split into fours, those into pairs and those into codes, each time by
// shifting the upper half back up to the next 32, 16 or 8 bits.
void UnpackImpl(uint8_t* HWY_RESTRICT codes, size_t num_words, uint32_t bits) {
  const int b = static_cast<int>(bits);
  const auto mask1 = hn::Set(U16(), static_cast<uint16_t>((1u << b) - 1));
  const auto mask2 = hn::Set(U32(), (1u << (2 * b)) - 1);
  const auto mask4 = hn::Set(U64(), (uint64_t{1} << (4 * b)) - 1);
  uint64_t* words = reinterpret_cast<uint64_t*>(codes);
  for (size_t i = 0; i < num_words; i += kWords) {
    const auto eights = hn::LoadU(U64(), words + i);
    const auto high4 = hn::And(hn::ShiftRightSame(eights, 4 * b), mask4);
    const auto fours = hn::BitCast(U32(), hn::Or(hn::And(eights, mask4), hn::ShiftLeft<32>(high4)));
    const auto high2 = hn::ShiftLeft<16>(hn::ShiftRightSame(fours, 2 * b));
    const auto pairs = hn::BitCast(U16(), hn::Or(hn::And(fours, mask2), high2));
    const auto high1 = hn::ShiftLeft<8>(hn::ShiftRightSame(pairs, b));
    const auto codes8 = hn::Or(hn::And(pairs, mask1), high1);
    hn::StoreU(hn::BitCast(U64(), codes8), U64(), words + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(PackImpl);
HWY_EXPORT(UnpackImpl);

void PackCodes(uint8_t* codes, size_t n, uint32_t bits, uint8_t* bytes) {
  if (n == 0) return;
  if (bits == 8) {
    std::memcpy(bytes, codes, n);
    return;
  }
  const size_t num_words = (n + 7) / 8;
  std::memset(codes + n, 0, 8 * num_words - n);
  HWY_DYNAMIC_DISPATCH(PackImpl)(codes, num_words, bits);
  const uint8_t* end = bytes + (n * bits + 7) / 8;
  size_t i = 0;
  // Whole words are stored, each over the useless end of the one before.
  for (; bytes + 8 <= end; ++i, bytes += bits) std::memcpy(bytes, codes + 8 * i, 8);
  for (; i < num_words; ++i, bytes += bits) {
    const size_t left = static_cast<size_t>(end - bytes);
    std::memcpy(bytes, codes + 8 * i, left < bits ? left : bits);
  }
}

void UnpackCodes(const uint8_t* bytes, size_t n, uint32_t bits, uint8_t* codes) {
  if (n == 0) return;
  if (bits == 8) {
    std::memcpy(codes, bytes, n);
    return;
  }
  const size_t num_words = (n + 7) / 8;
  const uint8_t* end = bytes + (n * bits + 7) / 8;
  size_t i = 0;
  for (; bytes + 8 <= end; ++i, bytes += bits) std::memcpy(codes + 8 * i, bytes, 8);
  for (; i < num_words; ++i, bytes += bits) StoreAs(LoadUpTo8(bytes, end), codes + 8 * i);
  HWY_DYNAMIC_DISPATCH(UnpackImpl)(codes, num_words, bits);
}

}  // namespace thinwire
#endif  // HWY_ONCE
