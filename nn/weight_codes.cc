#include "nn/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr NF4Levels kLevels;
constexpr int kMostInt8 = 127;
// Least scale of a block in kNF4; smaller values become zeros. Bitsandbytes takes them for parts of
// this number, so that they would have other codes when they are read back.
constexpr float kLeastScale = 1e-38f;

// The least magnitude that bf16 rounds to infinity.
constexpr float kOverflowsBF16 = 0x1.FFp127F;

absl::Status CheckFinite(absl::Span<const float> values, WeightFormat format) {
  for (size_t i = 0; i < values.size(); ++i) {
    const bool fits = format != WeightFormat::kBF16 || std::abs(values[i]) < kOverflowsBF16;
    if (std::isfinite(values[i]) && fits) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "element ", i, " is ", values[i], ", want finite numbers", fits ? "" : " of bf16"));
  }
  return absl::OkStatus();
}

float GreatestOf(const float* values, int64_t n) {
  float greatest = 0;
  for (int64_t i = 0; i < n; ++i) greatest = std::max(greatest, std::abs(values[i]));
  return greatest;
}

// Returns the number with the lower 7 of its 24 bits cut off.
float With17Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits &= ~uint32_t{0x7F};
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds to nearest, ties to even. The value is one that CheckFinite lets through.
uint16_t ToBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

void AppendBF16(const float* row, int64_t columns, WeightCodes* to) {
  for (int64_t i = 0; i < columns; ++i) {
    const uint16_t half = ToBF16(row[i]);
    to->codes.push_back(static_cast<uint8_t>(half & 0xFF));  // little-endian, as memory is
    to->codes.push_back(static_cast<uint8_t>(half >> 8));
  }
}

void AppendInt8(const float* row, int64_t columns, WeightCodes* to) {
  const float scale = With17Bits(GreatestOf(row, columns) / kMostInt8);
  to->scales.push_back(scale);
  for (int64_t i = 0; i < columns; ++i) {
    const float steps = scale > 0 ? std::nearbyint(row[i] / scale) : 0;
    const float most = kMostInt8;
    to->codes.push_back(static_cast<uint8_t>(
        static_cast<int8_t>(static_cast<int>(std::clamp(steps, -most, most)))));
  }
}

// Returns the index of the nearest level, the lower one of two as near. Their middles are fp32
// numbers.
uint8_t NearestLevel(float value) {
  uint8_t level = 0;
  for (int step = 8; step > 0; step /= 2) {
    const int next = level + step;
    const float middle = (kLevels.of[next - 1] + kLevels.of[next]) / 2;
    if (value > middle) level = static_cast<uint8_t>(next);
  }
  return level;
}

void AppendNF4(const float* row, int64_t columns, WeightCodes* to) {
  for (int64_t first = 0; first < columns; first += kNF4Block) {
    const float greatest = GreatestOf(row + first, kNF4Block);
    const bool is_zero = greatest < kLeastScale;
    to->scales.push_back(is_zero ? 0 : greatest);
    const float factor = is_zero ? 0 : 1.0f / greatest;
    const auto code = [&](int64_t i) {
      return NearestLevel(std::clamp(row[first + i] * factor, -1.0f, 1.0f));
    };
    for (int64_t i = 0; i < kNF4Block; i += 2) {
      to->codes.push_back(static_cast<uint8_t>(code(i) << 4 | code(i + 1)));
    }
  }
}

}  // namespace

absl::StatusOr<WeightCodes> Quantized(WeightFormat format, int64_t columns,
                                      absl::Span<const float> rows) {
  const absl::Status finite = CheckFinite(rows, format);
  if (!finite.ok()) return finite;
  const auto elements = static_cast<int64_t>(rows.size());
  WeightCodes codes;
  codes.codes.reserve(static_cast<size_t>(CodeBytes(format, elements)));
  for (int64_t first = 0; first < elements; first += columns) {
    const float* const row = rows.data() + first;
    switch (format) {
      case WeightFormat::kFP32: {
        const auto* const bytes = reinterpret_cast<const uint8_t*>(row);
        codes.codes.insert(codes.codes.end(), bytes, bytes + sizeof(float) * columns);
        break;
      }
      case WeightFormat::kBF16:
        AppendBF16(row, columns, &codes);
        break;
      case WeightFormat::kInt8:
        AppendInt8(row, columns, &codes);
        break;
      case WeightFormat::kNF4:
        AppendNF4(row, columns, &codes);
        break;
    }
  }
  return codes;
}

void Expand(WeightFormat format, int64_t columns, const WeightCodes& from, absl::Span<float> rows) {
  const uint8_t* const codes = from.codes.data();
  for (size_t i = 0; i < rows.size(); ++i) {
    switch (format) {
      case WeightFormat::kFP32:
        std::memcpy(&rows[i], codes + sizeof(float) * i, sizeof(float));
        break;
      case WeightFormat::kBF16: {
        const uint32_t bits = static_cast<uint32_t>(codes[2 * i] | codes[2 * i + 1] << 8) << 16;
        std::memcpy(&rows[i], &bits, sizeof(bits));
        break;
      }
      case WeightFormat::kInt8:
        rows[i] = static_cast<float>(static_cast<int8_t>(codes[i])) *
                  from.scales[i / static_cast<size_t>(columns)];
        break;
      case WeightFormat::kNF4: {
        const int code = i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 0xF;
        rows[i] = kLevels.of[code] * from.scales[i / kNF4Block];
        break;
      }
    }
  }
}

}  // namespace thinwire
