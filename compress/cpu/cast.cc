#include "compress/cpu/cast.h"

#include <algorithm>
#include <cstring>

#include "compress/cpu/blocks.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/convert.h"
#include "compress/cpu/half.h"
#include "compress/cpu/scan.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

int16_t PreScaleOf(const TensorView& x) {
  alignas(64) float scratch[kBlock];
  uint32_t largest = 0;
  for (int64_t i = 0; i < x.elements(); i += kBlock) {
    const size_t n = std::min<int64_t>(kBlock, x.elements() - i);
    largest = std::max(largest, LargestFiniteMagnitude(ReadFloats(x, i, n, scratch), n));
  }
  return PreScaleFor(FloatOf(largest));
}

void Narrow(const float* from, size_t n, DType to, float scale, uint8_t* out) {
  switch (to) {
    case DType::kF32:
      std::memcpy(out, from, 4 * n);
      return;
    case DType::kBF16:
      NarrowToBFloat(from, n, out);
      return;
    case DType::kF16:
      NarrowToHalf(from, n, scale, out);
      return;
  }
}

void Widen(const uint8_t* from, size_t n, DType type, float scale, float* out) {
  switch (type) {
    case DType::kF32:
      CopyFloats(from, n, out);
      return;
    case DType::kBF16:
      WidenBFloat(from, n, out);
      return;
    case DType::kF16:
      WidenHalf(from, n, scale, out);
      return;
  }
}

}  // namespace

Error CpuCastEncode(const TensorView& x, DType to, uint8_t* payload, size_t capacity,
                    size_t* bytes) {
  const int64_t elements = x.elements();
  *bytes = CastPayloadBytes(to, elements);
  if (capacity < *bytes) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "%s: payload memory of %zu bytes, want %zu", Name(to), capacity, *bytes);
  }
  if (to == x.dtype) {
    if (*bytes > 0) std::memcpy(payload, x.data, *bytes);
    return Error{};
  }
  float scale = 1;
  if (to == DType::kF16) {
    const int16_t exponent = PreScaleOf(x);
    StoreAs<int16_t>(exponent, payload);
    payload += 2;
    scale = PowerOfTwo(exponent);
  }
  alignas(64) float scratch[kBlock];
  for (int64_t i = 0; i < elements; i += kBlock) {
    const size_t n = std::min<int64_t>(kBlock, elements - i);
    Narrow(ReadFloats(x, i, n, scratch), n, to, scale, payload + i * SizeOf(to));
  }
  return Error{};
}

Error CpuCastDecode(const uint8_t* payload, size_t bytes, DType from, const TensorView& x) {
  const int64_t elements = x.elements();
  if (bytes != CastPayloadBytes(from, elements)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "%s: payload of %zu bytes, want %zu",
                     Name(from), bytes, CastPayloadBytes(from, elements));
  }
  if (from == x.dtype) {
    if (bytes > 0) std::memcpy(x.data, payload, bytes);
    return Error{};
  }
  float scale = 1;
  if (from == DType::kF16) {
    const int16_t exponent = LoadAs<int16_t>(payload);
    if (exponent < kLeastPreScale || exponent > kMostPreScale) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       "fp16: pre-scale exponent %d, want %d to %d", exponent, kLeastPreScale,
                       kMostPreScale);
    }
    payload += 2;
    scale = PowerOfTwo(-exponent);
  }
  alignas(64) float scratch[kBlock];
  for (int64_t i = 0; i < elements; i += kBlock) {
    const size_t n = std::min<int64_t>(kBlock, elements - i);
    Widen(payload + i * SizeOf(from), n, from, scale, FloatsToWrite(x, i, scratch));
    FinishFloats(x, i, n, scratch);
  }
  return Error{};
}

}  // namespace thinwire
