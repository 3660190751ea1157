#include "base/crc32c.h"

#include <nmmintrin.h>

#include <cstring>

#include "base/crc32c_polynomials.h"

namespace thinwire {
namespace {

// Returns the register after `kBytes` more zero bytes, with one table look-up for each of its four
// bytes. Appending zeros is linear: a multiplication by x^(8 kBytes).
template <size_t kBytes>
class Shift {
 public:
  constexpr Shift() : table_() {
    const uint32_t power = crc32c::PowerOfX(kBytes);
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t value = 0; value < 256; ++value) {
        table_[i][value] = crc32c::Multiply(value << (8 * i), power);
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return table_[0][crc & 0xFF] ^ table_[1][(crc >> 8) & 0xFF] ^ table_[2][(crc >> 16) & 0xFF] ^
           table_[3][crc >> 24];
  }

 private:
  uint32_t table_[4][256];
};

// Position in the bytes to read and, in the copying form, to write.
template <bool kCopy>
struct Cursor {
  const char* from;
  char* to;
  size_t left;

  uint64_t Word(size_t offset) const {
    uint64_t word;
    std::memcpy(&word, from + offset, 8);
    if (kCopy) std::memcpy(to + offset, &word, 8);
    return word;
  }
  void Advance(size_t bytes) {
    from += bytes;
    if (kCopy) to += bytes;
    left -= bytes;
  }
};

// The instruction has a latency of three cycles and can start every cycle. So three neighbouring
// lanes of kLane bytes are summed at once; then each sum is shifted past the following lane and
// added.
template <size_t kLane, bool kCopy>
uint64_t SumLanes(uint64_t crc, Cursor<kCopy>* at) {
  static constexpr Shift<kLane> kShift;
  while (at->left >= 3 * kLane) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      crc = _mm_crc32_u64(crc, at->Word(i));
      second = _mm_crc32_u64(second, at->Word(i + kLane));
      third = _mm_crc32_u64(third, at->Word(i + 2 * kLane));
    }
    crc = kShift(static_cast<uint32_t>(crc)) ^ second;
    crc = kShift(static_cast<uint32_t>(crc)) ^ third;
    at->Advance(3 * kLane);
  }
  return crc;
}

template <bool kCopy>
uint32_t Extend(uint32_t start, Cursor<kCopy> at) {
  uint64_t crc = ~start;
  crc = SumLanes<2048>(crc, &at);
  crc = SumLanes<128>(crc, &at);
  for (; at.left >= 8; at.Advance(8)) crc = _mm_crc32_u64(crc, at.Word(0));
  for (; at.left > 0; at.Advance(1)) {
    crc = _mm_crc32_u8(static_cast<uint32_t>(crc), static_cast<uint8_t>(*at.from));
    if (kCopy) *at.to = *at.from;
  }
  return ~static_cast<uint32_t>(crc);
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, const void* bytes, size_t size) {
  return Extend(crc, Cursor<false>{static_cast<const char*>(bytes), nullptr, size});
}

uint32_t ExtendCrc32cAndCopy(uint32_t crc, void* to, const void* from, size_t size) {
  return Extend(crc, Cursor<true>{static_cast<const char*>(from), static_cast<char*>(to), size});
}

}  // namespace thinwire
