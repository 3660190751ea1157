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
namespace {

// Encodes x[begin, end) into `codes` and returns the bits of its largest magnitude.
uint32_t EncodeBlock(const TensorView& x, int64_t begin, int64_t end, uint8_t* codes) {
  const uint32_t largest = LargestMagnitude(x, begin, end);
  if (largest >= kInfinityBits) return largest;
  ReadBlocks(x, begin, end, [&](int64_t i, size_t n, const float* values) {
    NearestCodes(values, n, FloatOf(largest), codes + (i - begin));
  });
  return largest;
}

void DecodeBlock(const uint8_t* codes, int64_t begin, int64_t end, float absmax,
                 const TensorView& x) {
  WriteBlocks(x, begin, end,
              [&](int64_t i, size_t n, float* to) { ValuesOfCodes(codes + i, n, absmax, to); });
}

}  // namespace

Error CpuBlockwise8Encode(const CodecSpec& spec, const TensorView& x,
                          const KernelContext& /*context*/, const PayloadBuffer& payload,
                          int threads) {
  const int64_t elements = x.elements();
  const uint32_t block = spec.block;
  *payload.bytes = Blockwise8PayloadBytes(block, elements);
  RETURN_ERROR(CheckCapacity("blockwise8", payload.capacity, *payload.bytes));
  uint8_t* const codes = payload.data + (*payload.bytes - elements);
  const Parts parts(elements, threads, block);
  const uint32_t largest = LargestOfParts(parts, [&](int64_t first, int64_t last) {
    uint32_t of_part = 0;
    for (int64_t begin = first; begin < last && of_part < kInfinityBits; begin += block) {
      const int64_t end = std::min<int64_t>(begin + block, last);
      const uint32_t of_block = EncodeBlock(x, begin, end, codes + begin);
      StoreAs<uint32_t>(of_block, payload.data + 4 * (begin / block));
      of_part = std::max(of_part, of_block);
    }
    return of_part;
  });
  return largest < kInfinityBits ? Error{} : NonFiniteError("blockwise8", x);
}

Error CpuBlockwise8Decode(const PayloadView& payload, const CodecSpec& spec,
                          const KernelContext& /*context*/, const TensorView& x, int threads) {
  const int64_t elements = x.elements();
  const uint32_t block = spec.block;
  RETURN_ERROR(
      CheckPayloadBytes("blockwise8", payload.bytes, Blockwise8PayloadBytes(block, elements)));
  const uint8_t* codes = payload.data + (payload.bytes - elements);
  return TryEachPart(Parts(elements, threads, block), [&](int, int64_t first, int64_t last) {
    for (int64_t begin = first; begin < last; begin += block) {
      const uint32_t largest = LoadAs<uint32_t>(payload.data + 4 * (begin / block));
      if (largest >= kInfinityBits) {
        return MakeError(
            kRefused, "blockwise8: absmax of block %lld is %g, want a finite number, not negative",
            static_cast<long long>(begin / block), static_cast<double>(FloatOf(largest)));
      }
      DecodeBlock(codes, begin, std::min<int64_t>(begin + block, last), FloatOf(largest), x);
    }
    return Error{};
  });
}

}  // namespace thinwire
