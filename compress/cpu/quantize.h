// Quantisation to the codes of a uniform grid, and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/range_line.h"

namespace thinwire {

// Lines of neighbouring elements that belong to different scopes: one entry per element.
struct EncodeLines {
  const float *offset, *lift, *inverse;
};
struct DecodeLines {
  const float *offset, *range;
};

// Quantise x. Without `random` they round to nearest, ties to even. With it they round up with the
// probability of the fraction: iff the upper 24 bits of random[i], as a number in [0, 1), are below
// it.
void Quantize(const float* x, size_t n, const EncodeLine& line, int32_t zero_code, int32_t max_code,
              const uint32_t* random, uint8_t* codes);
void QuantizeEach(const float* x, size_t n, const EncodeLines& lines, int32_t zero_code,
                  int32_t max_code, const uint32_t* random, uint8_t* codes);

// Dequantise codes, as given above.
void Dequantize(const uint8_t* codes, size_t n, const DecodeLine& line, int32_t zero_code,
                float reciprocal, float* x);
void DequantizeEach(const uint8_t* codes, size_t n, const DecodeLines& lines, int32_t zero_code,
                    float reciprocal, float* x);

}  // namespace thinwire
