#include "compress/cpu/cast.h"

#include <algorithm>
#include <cstring>

#include "compress/cpu/blocks.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/convert.h"
#include "compress/cpu/half.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/layout.h"
#include "compress/refusals.h"

namespace thinwire {
namespace {

int16_t PreScaleOf(const TensorView& x, const Parts& parts) {
  const uint32_t largest = LargestOfParts(parts, [&](int64_t begin, int64_t end) {
    alignas(64) float scratch[kBlock];
    uint32_t of_part = 0;
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      of_part = std::max(of_part, LargestFiniteMagnitude(ReadFloats(x, i, n, scratch), n));
    });
    return of_part;
  });
  return PreScaleFor(FloatOf(largest));
}

void CopyBytes(const void* from, int64_t element_bytes, const Parts& parts, void* to) {
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    if (begin == end) return;
    std::memcpy(static_cast<uint8_t*>(to) + begin * element_bytes,
                static_cast<const uint8_t*>(from) + begin * element_bytes,
                (end - begin) * element_bytes);
  });
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

Error CpuCastEncode(const TensorView& x, DType to, uint8_t* payload, size_t capacity, size_t* bytes,
                    int threads) {
  const int64_t elements = x.elements();
  *bytes = CastPayloadBytes(to, elements);
  if (const Error error = CheckCapacity(Name(to), capacity, *bytes); !error.ok()) return error;
  const Parts parts(elements, threads);
  if (to == x.dtype) {
    CopyBytes(x.data, SizeOf(to), parts, payload);
    return Error{};
  }
  float scale = 1;
  if (to == DType::kF16) {
    const int16_t exponent = PreScaleOf(x, parts);
    StoreAs<int16_t>(exponent, payload);
    payload += 2;
    scale = PowerOfTwo(exponent);
  }
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    alignas(64) float scratch[kBlock];
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      Narrow(ReadFloats(x, i, n, scratch), n, to, scale, payload + i * SizeOf(to));
    });
  });
  return Error{};
}

Error CpuCastDecode(const uint8_t* payload, size_t bytes, DType from, const TensorView& x,
                    int threads) {
  const int64_t elements = x.elements();
  Error error = CheckPayloadBytes(Name(from), bytes, CastPayloadBytes(from, elements));
  if (!error.ok()) return error;
  const Parts parts(elements, threads);
  if (from == x.dtype) {
    CopyBytes(payload, SizeOf(from), parts, x.data);
    return Error{};
  }
  float scale = 1;
  if (from == DType::kF16) {
    const int16_t exponent = LoadAs<int16_t>(payload);
    error = CheckPreScale(Name(from), exponent, kLeastPreScale, kMostPreScale);
    if (!error.ok()) return error;
    payload += 2;
    scale = PowerOfTwo(-exponent);
  }
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    alignas(64) float scratch[kBlock];
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      Widen(payload + i * SizeOf(from), n, from, scale, FloatsToWrite(x, i, scratch));
      FinishFloats(x, i, n, scratch);
    });
  });
  return Error{};
}

}  // namespace thinwire
