#include <algorithm>

#include "compress/bytes.h"
#include "compress/cpu/codecs.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/refusals.h"

namespace thinwire {

Error CpuFp8Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& /*context*/,
                   const PayloadBuffer& payload, int threads) {
  const int64_t elements = x.elements();
  *payload.bytes = Fp8PayloadBytes(elements);
  RETURN_ERROR(CheckCapacity("fp8", payload.capacity, *payload.bytes));
  const Parts parts(elements, threads);
  const uint32_t largest = LargestOfParts(
      parts, [&](int64_t begin, int64_t end) { return LargestMagnitude(x, begin, end); });
  if (largest >= kInfinityBits) return NonFiniteError("fp8", x);
  const int16_t exponent = PreScaleFor(FloatOf(largest), LargestFp8(spec.format));
  StoreAs<int16_t>(exponent, payload.data);
  uint8_t* const codes = payload.data + kFp8HeaderBytes;
  const Fp8Line line = {PowerOfTwo(exponent), LargestFp8Code(spec.format, exponent)};
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    ReadBlocks(x, begin, end, [&](int64_t i, size_t n, const float* values) {
      NarrowToFp8(values, n, spec.format, line, codes + i);
    });
  });
  return Error{};
}

Error CpuFp8Decode(const PayloadView& payload, const CodecSpec& spec,
                   const KernelContext& /*context*/, const TensorView& x, int threads) {
  const int64_t elements = x.elements();
  RETURN_ERROR(CheckPayloadBytes("fp8", payload.bytes, Fp8PayloadBytes(elements)));
  const int16_t exponent = LoadAs<int16_t>(payload.data);
  RETURN_ERROR(CheckPreScale("fp8", exponent, LeastPreScale(spec.format), kMostPreScale));
  const Fp8Line line = {PowerOfTwo(-exponent), LargestFp8Code(spec.format, exponent)};
  const uint8_t* codes = payload.data + kFp8HeaderBytes;
  const uint32_t largest =
      LargestOfParts(Parts(elements, threads), [&](int64_t begin, int64_t end) {
        uint8_t of_part = 0;
        WriteBlocks(x, begin, end, [&](int64_t i, size_t n, float* to) {
          of_part = std::max(of_part, WidenFp8(codes + i, n, spec.format, line.scale, to));
        });
        return of_part;
      });
  if (largest <= line.largest_code) return Error{};
  return MakeError(kRefused, "fp8: magnitude code 0x%02x with exponent %d, want at most 0x%02x",
                   largest, exponent, line.largest_code);
}

}  // namespace thinwire
