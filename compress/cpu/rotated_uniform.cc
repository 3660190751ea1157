#include <algorithm>

#include "compress/bytes.h"
#include "compress/cpu/blocks.h"
#include "compress/cpu/codecs.h"
#include "compress/cpu/loops.h"
#include "compress/cpu/nonfinite.h"
#include "compress/cpu/parallel.h"
#include "compress/cpu/rotation.h"
#include "compress/cpu/scan.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Transforms whole blocks of x[0, n), then the rest, divided into descending powers of two.
void TransformAll(float* x, size_t n, size_t block) {
  for (size_t size = block; n > 0; size /= 2) {
    const size_t length = n / size * size;
    Hadamard(x, length, size);
    x += length;
    n -= length;
  }
}

// Flips the signs of elements [begin, begin + n).
void FlipSignsAt(const float* from, int64_t begin, size_t n, uint64_t key, float* to) {
  alignas(64) uint32_t numbers[kBlock / 32];
  PhiloxNumbers(key, begin / 32, (n + 31) / 32, numbers);
  FlipSigns(from, n, numbers, to);
}

// Flips signs and transforms elements [begin, end). Returns the bits of the largest magnitude
// before.
uint32_t RotateChunk(const TensorView& x, int64_t begin, int64_t end, const CodecSpec& spec,
                     uint64_t key, float* out) {
  uint32_t largest = 0;
  for (int64_t i = begin; i < end; i += kBlock) {
    const size_t n = std::min<int64_t>(kBlock, end - i);
    const float* from = ReadFloats(x, i, n, out + i);
    largest = std::max(largest, LargestMagnitude(from, n));
    FlipSignsAt(from, i, n, key, out + i);
  }
  TransformAll(out + begin, end - begin, spec.rotation_block);
  return largest;
}

Error Rotate(const TensorView& x, const CodecSpec& spec, uint64_t key, int threads, float* out) {
  const int64_t chunk = PieceOfRotation(spec.rotation_block);
  const Parts parts(x.elements(), threads, chunk);
  const uint32_t largest = LargestOfParts(parts, [&](int64_t first, int64_t last) {
    uint32_t of_part = 0;
    for (int64_t begin = first; begin < last; begin += chunk) {
      const int64_t end = std::min(begin + chunk, last);
      of_part = std::max(of_part, RotateChunk(x, begin, end, spec, key, out));
    }
    return of_part;
  });
  if (largest >= kInfinityBits) return NonFiniteError("uniform", x);
  if (FloatOf(largest) <= MostToRotate(spec.rotation_block)) return Error{};
  return TooLargeToRotate(FloatOf(largest), spec.rotation_block);
}

// Rotates back in place in `y`, then writes x unless it is that memory.
Error RotateBack(float* y, const CodecSpec& spec, uint64_t key, int threads, const TensorView& x) {
  const int64_t chunk = PieceOfRotation(spec.rotation_block);
  const Parts parts(x.elements(), threads, chunk);
  return TryEachPart(parts, [&](int, int64_t first, int64_t last) {
    for (int64_t begin = first; begin < last; begin += chunk) {
      const int64_t end = std::min(begin + chunk, last);
      const float largest = FloatOf(LargestMagnitude(y + begin, end - begin));
      if (!(largest <= MostRotated(spec.rotation_block))) {
        return MakeError(kRefused, "uniform: a rotated value of magnitude %g, want at most %g",
                         static_cast<double>(largest),
                         static_cast<double>(MostRotated(spec.rotation_block)));
      }
      TransformAll(y + begin, end - begin, spec.rotation_block);
      ForEachBlock(begin, end, [&](int64_t i, size_t n) {
        FlipSignsAt(y + i, i, n, key, y + i);
        FinishFloats(x, i, n, y + i);
      });
    }
    return Error{};
  });
}

float* ThreadsFloats(int64_t n) {
  static thread_local Scratch<float> memory;
  return memory.Get(n);
}

}  // namespace

Error CpuRotatedUniformEncode(const CodecSpec& spec, const TensorView& x,
                              const KernelContext& context, const PayloadBuffer& payload,
                              int threads) {
  if (payload.capacity < kRotationKeyBytes) {
    return MakeError(kRefused, "uniform: payload memory of %zu bytes, want at least %zu",
                     payload.capacity, kRotationKeyBytes);
  }
  float* const rotated = ThreadsFloats(x.elements());
  RETURN_ERROR(Rotate(x, spec, context.random_key, threads, rotated));
  StoreAs<uint64_t>(context.random_key, payload.data);
  // Rounding must be independent of the signs.
  KernelContext rounding;
  rounding.random_key = ~context.random_key;
  const Error error = CpuUniformEncode(WithoutRotation(spec), FloatsLike(x, rotated), rounding,
                                       payload.behind(kRotationKeyBytes), threads);
  *payload.bytes += kRotationKeyBytes;
  return error;
}

Error CpuRotatedUniformDecode(const PayloadView& payload, const CodecSpec& spec,
                              const KernelContext& context, const TensorView& x, int threads) {
  if (payload.bytes < kRotationKeyBytes) {
    return MakeError(kRefused, "uniform: payload of %zu bytes, want at least %zu", payload.bytes,
                     kRotationKeyBytes);
  }
  float* const rotated =
      x.dtype == DType::kF32 ? static_cast<float*>(x.data) : ThreadsFloats(x.elements());
  RETURN_ERROR(CpuUniformDecode(payload.behind(kRotationKeyBytes), WithoutRotation(spec), context,
                                FloatsLike(x, rotated), threads));
  return RotateBack(rotated, spec, LoadAs<uint64_t>(payload.data), threads, x);
}

}  // namespace thinwire
