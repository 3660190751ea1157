// How a matrix of weights that nobody trains is held in memory: in few bits, and expanded to
// numbers before each product.
#pragma once

#include <cstdint>

namespace thinwire {

// Formats of [rows, columns] weights. Expanded values are rounded once, to fp32, and then to the
// type of the product, if that is bf16.
enum class WeightFormat : uint8_t {
  kFP32,  // numbers as they are
  kBF16,  // rounded to nearest, ties to even
  // A byte c for each element, -127 to 127, and an fp32 scale s for each row: c s. The scale has 17
  // bits, so that all products are exact.
  kInt8,
  // Four bits for each element, and an fp32 scale for each 64 neighbours along a row: a level times
  // the scale (Dettmers et al., QLoRA, NeurIPS 2023). Of a byte, the upper bits are the first
  // element. Rows have a multiple of 64 elements.
  kNF4
};

// Number of elements with one scale in kNF4.
inline constexpr int64_t kNF4Block = 64;

// Levels of kNF4, those of bitsandbytes.
struct NF4Levels {
  float of[16] = {-1.0f,
                  -0.6961928009986877f,
                  -0.5250730514526367f,
                  -0.39491748809814453f,
                  -0.28444138169288635f,
                  -0.18477343022823334f,
                  -0.09105003625154495f,
                  0.0f,
                  0.07958029955625534f,
                  0.16093020141124725f,
                  0.24611230194568634f,
                  0.33791524171829224f,
                  0.44070982933044434f,
                  0.5626170039176941f,
                  0.7229568362236023f,
                  1.0f};
};

// Returns the bytes of the codes of so many elements.
constexpr int64_t CodeBytes(WeightFormat format, int64_t elements) {
  switch (format) {
    case WeightFormat::kFP32:
      return 4 * elements;
    case WeightFormat::kBF16:
      return 2 * elements;
    case WeightFormat::kInt8:
      return elements;
    case WeightFormat::kNF4:
      return elements / 2;
  }
  return 0;
}

// Returns the number of scales.
constexpr int64_t NumScales(WeightFormat format, int64_t rows, int64_t columns) {
  if (format == WeightFormat::kInt8) return rows;
  return format == WeightFormat::kNF4 ? rows * columns / kNF4Block : 0;
}

// Returns the bytes of codes and scales.
constexpr int64_t FormatBytes(WeightFormat format, int64_t rows, int64_t columns) {
  return CodeBytes(format, rows * columns) + 4 * NumScales(format, rows, columns);
}

}  // namespace thinwire
