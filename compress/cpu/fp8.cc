#include "compress/cpu/fp8.h"

#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/fp8_convert.h"
#include "compress/cpu/half.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/layout.h"
#include "compress/refusals.h"

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

}  // namespace

Error CpuFp8Encode(const TensorView& x, Fp8Format format, uint8_t* payload, size_t capacity,
                   size_t* bytes, int threads) {
  const int64_t elements = x.elements();
  *bytes = Fp8PayloadBytes(elements);
  if (const Error error = CheckCapacity("fp8", capacity, *bytes); !error.ok()) return error;
  const Parts parts(elements, threads);
  const uint32_t largest = LargestMagnitudeOf(x, parts);
  if (largest >= kInfinityBits) return NonFiniteError("fp8", x);
  const int16_t exponent = PreScaleFor(FloatOf(largest), LargestFp8(format));
  StoreAs<int16_t>(exponent, payload);
  const Fp8Line line = {PowerOfTwo(exponent), LargestFp8Code(format, exponent)};
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
  Error error = CheckPayloadBytes("fp8", bytes, Fp8PayloadBytes(elements));
  if (!error.ok()) return error;
  const int16_t exponent = LoadAs<int16_t>(payload);
  error = CheckPreScale("fp8", exponent, LeastPreScale(format), kMostPreScale);
  if (!error.ok()) return error;
  const Fp8Line line = {PowerOfTwo(-exponent), LargestFp8Code(format, exponent)};
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
  return CheckLargestFp8(largest, exponent, line.largest_code);
}

}  // namespace thinwire
