// Loops that are compiled once for each instruction set; one is chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/codebook_table.h"
#include "compress/cpu/fp8_line.h"
#include "compress/spec.h"

namespace thinwire {

// Conversions of arrays between fp32 and codes of blockwise8's codebook, with the same bits on
// every SIMD target.

// Sets codes[i] to the index of the value nearest to fp32(x[i] / absmax), the lower one in a tie;
// to kZeroCode if absmax is 0. Requires |x[i]| <= absmax, finite.
void NearestCodes(const float* x, size_t n, float absmax, uint8_t* codes);

// Sets x[i] to the value of codes[i] times absmax.
void ValuesOfCodes(const uint8_t* codes, size_t n, float absmax, float* x);

// Conversions of arrays between fp32 and the types on the wire, with the same bits on every SIMD
// target. Byte arrays may have any alignment, as payloads do.

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

// Conversions of arrays between fp32 and 8-bit floats, with the same bits on every SIMD target.

// Sets codes[i] to the sign of x[i] and min(fp8 of |x[i]| * scale, largest_code), to nearest even.
// Requires x[i] finite, and x[i] * scale at most LargestFp8.
void NarrowToFp8(const float* x, size_t n, Fp8Format format, const Fp8Line& line, uint8_t* codes);

// Sets x[i] = scale * codes[i]. Returns the largest code without its sign. The caller refuses codes
// that are no number, for which x is unspecified.
uint8_t WidenFp8(const uint8_t* codes, size_t n, Fp8Format format, float scale, float* x);

// Parts of a random rotation: signs, and the Walsh-Hadamard transform. Results have the same bits
// on every SIMD target: each sum and product is rounded to fp32 on its own, in the order given
// here.

// Sets to[i] = from[i], negated iff bit i % 32 of numbers[i / 32] is set. `to` may be `from`.
void FlipSigns(const float* from, size_t n, const uint32_t* numbers, float* to);

// Transforms each of the n / size blocks of x in place. `size` is a power of two up to 2^15, and n
// is a multiple of it. For h = 1, 2, 4, ... size / 2, every pair (a, b) = (x[i], x[i + h]) with bit
// h of i clear becomes (a + b, a - b). At the end each element is multiplied by fp32(1 /
// sqrt(size)).
void Hadamard(float* x, size_t n, size_t size);

// Packing of codes of 1 to 8 bits without gaps: code i takes bits [i b, (i + 1) b) of the bytes,
// the lowest bit of a byte first.

// Packs codes[0, n), all below 2^bits, into ceil(n bits / 8) bytes; unused bits are zero. `codes`
// has memory for n rounded up to 64 and is overwritten.
void PackCodes(uint8_t* codes, size_t n, uint32_t bits, uint8_t* bytes);

// Unpacks n codes from ceil(n bits / 8) bytes. `codes` has memory for n rounded up to 64.
void UnpackCodes(const uint8_t* bytes, size_t n, uint32_t bits, uint8_t* codes);

// Random numbers of base/random.h, many at once.

// Sets numbers[i] to the (first + i)-th number of RandomStream(key). Requires first % 4 == 0.
// `numbers` has memory for n rounded up to 64.
void PhiloxNumbers(uint64_t key, uint64_t first, size_t n, uint32_t* numbers);

// Positions from Rice-coded gaps (docs/compression.md), eight at a time.

// Longest remainder, in bits, of which a sum of eight fits in a byte.
constexpr uint32_t kMostRiceBitsAtOnce = 5;

// Turns numbers of flags into positions (their low 32 bits), in place, for entries first, ...,
// first + n - 1. Their remainders have `rice_bits` <= kMostRiceBitsAtOnce bits, a byte each at
// `remainders`, which has memory for n rounded up to 8. `sum` is the sum of all earlier remainders;
// returns it with these added.
uint32_t PositionsOfFlags(uint32_t* flags, const uint8_t* remainders, size_t n, uint32_t rice_bits,
                          uint32_t first, uint32_t sum);

}  // namespace thinwire
