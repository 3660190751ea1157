#include "compress/cpu/blockwise8.h"

#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/codebook.h"
#include "compress/cpu/half.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/scan.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// Calls visit(first element, number of elements) for runs of [begin, end) that fit the cache.
template <typename Visit>
void ForEachRun(int64_t begin, int64_t end, Visit visit) {
  for (int64_t i = begin; i < end; i += kBlock) {
    visit(i, static_cast<size_t>(std::min<int64_t>(kBlock, end - i)));
  }
}

// Bits of the largest magnitude of x[begin, end), and the codes that it makes of them.
uint32_t EncodeBlock(const TensorView& x, int64_t begin, int64_t end, uint8_t* codes) {
  alignas(64) float scratch[kBlock];
  uint32_t largest = 0;
  ForEachRun(begin, end, [&](int64_t i, size_t n) {
    largest = std::max(largest, LargestMagnitude(ReadFloats(x, i, n, scratch), n));
  });
  if (largest >= kInfinityBits) return largest;
  ForEachRun(begin, end, [&](int64_t i, size_t n) {
    NearestCodes(ReadFloats(x, i, n, scratch), n, FloatOf(largest), codes + (i - begin));
  });
  return largest;
}

}  // namespace

Error CpuBlockwise8Encode(const TensorView& x, uint32_t block, uint8_t* payload, size_t capacity,
                          size_t* bytes) {
  const int64_t elements = x.elements();
  *bytes = Blockwise8PayloadBytes(block, elements);
  if (capacity < *bytes) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "blockwise8: payload memory of %zu bytes, want %zu", capacity, *bytes);
  }
  uint8_t* codes = payload + (*bytes - elements);
  for (int64_t begin = 0; begin < elements; begin += block) {
    const int64_t end = std::min<int64_t>(begin + block, elements);
    const uint32_t largest = EncodeBlock(x, begin, end, codes + begin);
    if (largest >= kInfinityBits) return NonFiniteError("blockwise8", x);
    StoreAs<uint32_t>(largest, payload);
    payload += 4;
  }
  return Error{};
}

Error CpuBlockwise8Decode(const uint8_t* payload, size_t bytes, uint32_t block,
                          const TensorView& x) {
  const int64_t elements = x.elements();
  if (bytes != Blockwise8PayloadBytes(block, elements)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "blockwise8: payload of %zu bytes, want %zu", bytes,
                     Blockwise8PayloadBytes(block, elements));
  }
  const uint8_t* codes = payload + (bytes - elements);
  alignas(64) float scratch[kBlock];
  for (int64_t begin = 0; begin < elements; begin += block) {
    const uint32_t largest = LoadAs<uint32_t>(payload);
    if (largest >= kInfinityBits) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       "blockwise8: absmax of block %lld is %g, want a finite number, not negative",
                       static_cast<long long>(begin / block),
                       static_cast<double>(FloatOf(largest)));
    }
    payload += 4;
    ForEachRun(begin, std::min<int64_t>(begin + block, elements), [&](int64_t i, size_t n) {
      ValuesOfCodes(codes + i, n, FloatOf(largest), FloatsToWrite(x, i, scratch));
      FinishFloats(x, i, n, scratch);
    });
  }
  return Error{};
}

}  // namespace thinwire
