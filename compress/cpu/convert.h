// Arrays between fp32 and the types on the wire, the same bits on every SIMD target. The side of
// bytes may have any alignment, as payloads do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Rounds to nearest even, overflows to infinity, keeps NaN.
void NarrowToBFloat(const float* from, size_t n, uint8_t* to);
void WidenBFloat(const uint8_t* from, size_t n, float* to);

// Half of (scale * from); from = scale * half. `scale` is a power of two. Narrowing takes finite
// values above 0x1.FFCp127 for that one, which decodes to a finite value.
void NarrowToHalf(const float* from, size_t n, float scale, uint8_t* to);
void WidenHalf(const uint8_t* from, size_t n, float scale, float* to);

// Floats from any alignment.
void CopyFloats(const uint8_t* from, size_t n, float* to);

}  // namespace thinwire
