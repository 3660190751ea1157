// Conversions of arrays between fp32 and the types on the wire, with the same bits on every SIMD
// target. Byte arrays may have any alignment, as payloads do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Converts to bf16 (to nearest even; overflows to infinity; keeps NaN), and back.
void NarrowToBFloat(const float* from, size_t n, uint8_t* to);
void WidenBFloat(const uint8_t* from, size_t n, float* to);

// Convert to and from fp16: NarrowToHalf stores the halves of scale * from[i], WidenHalf sets to[i]
// to scale times a half. `scale` is a power of two. Narrowing takes finite values above 0x1.FFCp127
// as that one, which decodes to a finite value.
void NarrowToHalf(const float* from, size_t n, float scale, uint8_t* to);
void WidenHalf(const uint8_t* from, size_t n, float scale, float* to);

// Copies floats from memory of any alignment.
void CopyFloats(const uint8_t* from, size_t n, float* to);

}  // namespace thinwire
