#include "compress/cpu/fp8.h"

#include <algorithm>
#include <cmath>

#include "compress/cpu/blocks.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/fp8_convert.h"
#include "compress/cpu/half.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

uint32_t LargestMagnitudeOf(const TensorView& x, const Parts& parts) {
  return LargestOfParts(parts, [&](int64_t begin, int64_t end) {
    alignas(64) float scratch[kBlock];
    uint32_t largest = 0;
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      largest = std::max(largest, LargestMagnitude(ReadFloats(x, i, n, scratch), n));
    });
    return largest;
  });
}

// The least exponent goes with values above 1.75 * 2^127 and is met by no other.
int LeastPreScale(Fp8Format format) {
  return PreScaleFor(FloatOf(kInfinityBits - 1), LargestFp8(format));
}

// With the least exponent, codes above this one would decode to 2^128 and more.
uint8_t LargestCode(Fp8Format format, int exponent) {
  if (exponent == LeastPreScale(format)) return 0x77;
  return format == Fp8Format::kE4M3 ? 0x7E : 0x7B;
}

}  // namespace

Error CpuFp8Encode(const TensorView& x, Fp8Format format, uint8_t* payload, size_t capacity,
                   size_t* bytes, int threads) {
  const int64_t elements = x.elements();
  *bytes = Fp8PayloadBytes(elements);
  if (capacity < *bytes) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "fp8: payload memory of %zu bytes, want %zu", capacity, *bytes);
  }
  const Parts parts(elements, threads);
  const uint32_t largest = LargestMagnitudeOf(x, parts);
  if (largest >= kInfinityBits) return NonFiniteError("fp8", x);
  const int16_t exponent = PreScaleFor(FloatOf(largest), LargestFp8(format));
  StoreAs<int16_t>(exponent, payload);
  const Fp8Line line = {PowerOfTwo(exponent), LargestCode(format, exponent)};
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    alignas(64) float scratch[kBlock];
    ForEachBlock(begin, end, [&](int64_t i, size_t n) {
      NarrowToFp8(ReadFloats(x, i, n, scratch), n, format, line, payload + kFp8HeaderBytes + i);
    });
  });
  return Error{};
}

Error CpuFp8Decode(const uint8_t* payload, size_t bytes, Fp8Format format, const TensorView& x,
                   int threads) {
  const int64_t elements = x.elements();
  if (bytes != Fp8PayloadBytes(elements)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "fp8: payload of %zu bytes, want %zu",
                     bytes, Fp8PayloadBytes(elements));
  }
  const int16_t exponent = LoadAs<int16_t>(payload);
  if (exponent < LeastPreScale(format) || exponent > kMostPreScale) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "fp8: pre-scale exponent %d, want %d to %d", exponent, LeastPreScale(format),
                     kMostPreScale);
  }
  const Fp8Line line = {PowerOfTwo(-exponent), LargestCode(format, exponent)};
  const uint8_t* codes = payload + kFp8HeaderBytes;
  const uint32_t largest =
      LargestOfParts(Parts(elements, threads), [&](int64_t begin, int64_t end) {
        alignas(64) float scratch[kBlock];
        uint8_t of_part = 0;
        ForEachBlock(begin, end, [&](int64_t i, size_t n) {
          float* to = FloatsToWrite(x, i, scratch);
          of_part = std::max(of_part, WidenFp8(codes + i, n, format, line.scale, to));
          FinishFloats(x, i, n, scratch);
        });
        return of_part;
      });
  if (largest <= line.largest_code) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "fp8: magnitude code 0x%02x with exponent %d, want at most 0x%02x", largest,
                   exponent, line.largest_code);
}

}  // namespace thinwire
