#include <cassert>

#include "compress/cpu/loops.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/philox.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using U64 = hn::ScalableTag<uint64_t>;
using U32 = hn::Repartition<uint32_t, U64>;
using Words = hn::Vec<U64>;
constexpr size_t kCounters = hn::MaxLanes(U64());

// Returns the product of the low halves of each word.
HWY_INLINE Words Product(Words a, Words b) {
  return hn::MulEven(hn::BitCast(U32(), a), hn::BitCast(U32(), b));
}

// Computes one counter per 64-bit lane, with each of its four 32-bit words in a vector of its own.
// The upper halves of x0 to x3 are left dirty: products ignore them and the end cuts them off.
void PhiloxImpl(uint64_t key, uint64_t first_counter, size_t num_counters,
                uint32_t* HWY_RESTRICT numbers) {
  const U64 d;
  const auto multiplier0 = hn::Set(d, 0xD2511F53u);
  const auto multiplier1 = hn::Set(d, 0xCD9E8D57u);
  const auto low = hn::Set(d, 0xFFFFFFFFu);
  for (size_t c = 0; c < num_counters; c += kCounters) {
    const auto counter = hn::Add(hn::Iota(d, 0), hn::Set(d, first_counter + c));
    Words x0 = counter, x1 = hn::ShiftRight<32>(counter), x2 = hn::Zero(d), x3 = hn::Zero(d);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = Product(x0, multiplier0);
      const auto p1 = Product(x2, multiplier1);
      x0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), x1), hn::Set(d, uint64_t{k0}));
      x2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), x3), hn::Set(d, uint64_t{k1}));
      x1 = p1;
      x3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const auto x01 = hn::Or(hn::And(x0, low), hn::ShiftLeft<32>(x1));
    const auto x23 = hn::Or(hn::And(x2, low), hn::ShiftLeft<32>(x3));
    hn::StoreInterleaved2(x01, x23, d, reinterpret_cast<uint64_t*>(numbers + 4 * c));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(PhiloxImpl);

void PhiloxNumbers(uint64_t key, uint64_t first, size_t n, uint32_t* numbers) {
  assert(first % 4 == 0);
  HWY_DYNAMIC_DISPATCH(PhiloxImpl)(key, first / 4, (n + 3) / 4, numbers);
}

}  // namespace thinwire
#endif  // HWY_ONCE
