// Values to the codes of a uniform grid, and back.
//
// Encode: y = ((x - offset) * lift) * inverse, clipped to [-zero_code, max_code - zero_code];
// code = zero_code + y rounded. Decode, each operation rounded to fp32 on its own:
// x = (((code - zero_code) * reciprocal) * range) + offset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/range_line.h"

namespace thinwire {

// Lines of neighbouring elements of unlike scopes: one entry per element.
struct EncodeLines {
  const float *offset, *lift, *inverse;
};
struct DecodeLines {
  const float *offset, *range;
};

// codes[i] of x[i]. Without `random` to nearest, ties to even; with it up with the probability of
// the fraction: iff its upper 24 bits, as a number in [0, 1), are below the fraction.
void Quantize(const float* x, size_t n, const EncodeLine& line, int32_t zero_code, int32_t max_code,
              const uint32_t* random, uint8_t* codes);
void QuantizeEach(const float* x, size_t n, const EncodeLines& lines, int32_t zero_code,
                  int32_t max_code, const uint32_t* random, uint8_t* codes);

void Dequantize(const uint8_t* codes, size_t n, const DecodeLine& line, int32_t zero_code,
                float reciprocal, float* x);
void DequantizeEach(const uint8_t* codes, size_t n, const DecodeLines& lines, int32_t zero_code,
                    float reciprocal, float* x);

}  // namespace thinwire
