// AdamW's means in a byte for each value and an fp32 scale for each block of 256 (Dettmers et al.,
// "8-bit Optimizers via Block-wise Quantization", ICLR 2022). A value is its code's number times
// its block's scale. The scale is the block's value of the largest magnitude, with its sign: the
// number 1 has a code, -1 has none, so what was expanded gives the same codes and scales again.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace thinwire {

// Number of values with one scale: neighbours in memory, the last block may have fewer.
inline constexpr int64_t kMomentBlock = 256;

// The numbers of all codes, ascending: a decade has twice as many as the one below it, evenly
// spaced, which the paper calls a dynamic tree. They are bitsandbytes' create_dynamic_map.
struct MomentCode {
  float numbers[256] = {};
  // A value over its scale has as many middles below it as its code says: it takes the nearest
  // number, the lower one of two as near.
  float middles[255] = {};
};

// Returns the code of signed numbers, or of those from 0 on. In the latter nothing but zero becomes
// zero: a gradient's mean over the root of zero would be a huge step (Li et al., "Memory Efficient
// Optimizers with 4-bit States", NeurIPS 2023).
constexpr MomentCode NewMomentCode(bool is_signed) {
  constexpr double kDecades[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
  MomentCode code;
  const int zero = is_signed ? 127 : 0;
  int place = zero;
  int count = is_signed ? 1 : 2;
  for (const double decade : kDecades) {
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<float>(decade * (0.1 + 0.9 * (i + 0.5) / count));
      ++place;
      code.numbers[place] = number;
      if (is_signed) code.numbers[2 * zero - place] = -number;
    }
    count *= 2;
  }
  code.numbers[255] = 1;
  for (int i = 0; i < 255; ++i) code.middles[i] = (code.numbers[i] + code.numbers[i + 1]) / 2;
  if (!is_signed) code.middles[0] = 0;
  return code;
}

// Codes of means of gradients, and of their squares.
inline constexpr MomentCode kSignedMoments = NewMomentCode(true);
inline constexpr MomentCode kUnsignedMoments = NewMomentCode(false);

// Memory of a mean in codes.
struct CodedMean {
  float* scales = nullptr;   // one a block
  uint8_t* codes = nullptr;  // one a value
};

HOST_DEVICE constexpr int64_t NumMomentBlocks(int64_t n) {
  return (n + kMomentBlock - 1) / kMomentBlock;
}

// Returns the memory of n values, in words of 4 bytes: scales, then codes. Zeros are a mean of
// zeros.
constexpr int64_t MomentWords(int64_t n) { return NumMomentBlocks(n) + (n + 3) / 4; }
inline CodedMean CodedMeanIn(float* words, int64_t n) {
  return {words, reinterpret_cast<uint8_t*>(words + NumMomentBlocks(n))};
}

// Returns a key of a value's bits. The largest key of a block is that of its scale: it orders by
// magnitude, of two alike the positive one is larger.
HOST_DEVICE inline uint32_t MomentKey(uint32_t bits) { return bits << 1 | (~bits >> 31); }

// Returns the bits of a block's scale from its largest key. It is zero if no value reaches 2^-100,
// so that no product with a number is denormal, and NaN if a value is not finite.
HOST_DEVICE inline uint32_t MomentScale(uint32_t largest_key) {
  constexpr uint32_t kLeast = (127 - 100) << 23, kGreatest = 0x7F7FFFFF, kNaN = 0x7FC00000;
  const uint32_t magnitude = largest_key >> 1;
  if (magnitude > kGreatest) return kNaN;
  if (magnitude < kLeast) return 0;
  return magnitude | (largest_key & 1 ? 0 : 0x80000000U);
}

// Returns whether values are divided by such a scale; if not, all codes of the block are 0.
HOST_DEVICE inline bool DividesMoments(uint32_t scale) {
  return scale != 0 && (scale & 0x7F800000U) != 0x7F800000U;
}

// Returns the code of a value over its scale.
HOST_DEVICE inline uint8_t NearestMoment(const float* middles, float quotient) {
  int code = 0;
  for (int step = 128; step > 0; step /= 2) {
    if (quotient > middles[code + step - 1]) code += step;
  }
  return static_cast<uint8_t>(code);
}

// Write the codes and scales of n values, and what they stand for, in host memory. They are the
// definition for the kernels.
void QuantizeMoments(const MomentCode& code, const float* values, int64_t n, const CodedMean& to);
void ExpandMoments(const MomentCode& code, const CodedMean& from, int64_t n, float* values);

}  // namespace thinwire
