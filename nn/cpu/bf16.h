// One element of fp32 or bf16, as fp32. bf16 is kept as uint16_t: the upper half of an fp32.
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
// Round to nearest, ties to even; NaN stays NaN.
inline void StoreOne(float v, uint16_t* to) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  *to = v != v ? 0x7FC0 : static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace thinwire
