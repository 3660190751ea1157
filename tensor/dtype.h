// Element types. Their numbers are sent in frames and cross the plugin ABI: never reuse one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// kI32 is for tokens and labels and is never sent in a frame.
enum class DType : uint8_t { kF32 = 1, kBF16 = 2, kF16 = 3, kI32 = 4 };

constexpr size_t SizeOf(DType type) { return type == DType::kF32 || type == DType::kI32 ? 4 : 2; }

constexpr const char* Name(DType type) {
  switch (type) {
    case DType::kF32:
      return "fp32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "fp16";
    case DType::kI32:
      return "int32";
  }
  return "unknown";
}

}  // namespace thinwire
