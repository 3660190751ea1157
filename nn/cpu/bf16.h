// Loads and stores one element of fp32 or bf16 as fp32. bf16 is a uint16_t: the upper half of an
// fp32.
#pragma once

#include <cstdint>
#include <cstring>

namespace thinwire {

inline float LoadOne(const float* from) { return *from; }
inline void StoreOne(float v, float* to) { *to = v; }

inline float LoadOne(const uint16_t* from) {
  const uint32_t bits = uint32_t{*from} << 16;
  float v;
  std::memcpy(&v, &bits, sizeof(v));
  return v;
}
// Rounds to nearest, ties to even. Adding just under half a unit of the upper 16 bits, and one more
// if they are odd, carries into them when the lower 16 bits round up. NaN stays NaN.
inline void StoreOne(float v, uint16_t* to) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  *to = v != v ? 0x7FC0 : static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace thinwire
