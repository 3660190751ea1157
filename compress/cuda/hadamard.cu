#include <cuda_runtime.h>

#include <algorithm>

#include "compress/cpu/rotation.h"
#include "compress/cuda/hadamard.h"
#include "compress/cuda/philox.cuh"
#include "compress/half.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

// Tile that a block of threads transforms in shared memory. It holds stretches of up to kTile
// elements; longer ones take their last steps in a second kernel.
constexpr int kTileBits = 13;
constexpr int kTile = 1 << kTileBits;
constexpr int kThreads = kTile / 16;
constexpr int kSignBlocks = kTile / 128 + 1;  // blocks of Philox, 128 signs each

// Division of a tensor: elements [0, main) are in stretches of `size`, those behind in stretches of
// descending powers of two.
struct Plan {
  int64_t total, main, main_tiles;
  int size;
  bool main_is_whole;  // false: further steps follow
};

// Stretches of one tile: a whole number of them.
struct Stretches {
  int64_t begin;
  int length, size;
  bool are_whole;
};

__device__ Stretches StretchesOf(const Plan& plan, int64_t tile) {
  int64_t begin = tile * kTile;
  if (begin < plan.main) {
    const int length = static_cast<int>(min(plan.main - begin, int64_t{kTile}));
    return {begin, length, plan.size, plan.main_is_whole};
  }
  // The rest is less than 2 kTile elements. Each set bit of that number is a stretch of that
  // length.
  const int rest = static_cast<int>(plan.total - plan.main);
  int64_t before = tile - plan.main_tiles;
  int size = kTile;
  begin = plan.main;
  for (; size > 1; size /= 2) {
    if ((rest & size) == 0) continue;
    if (before-- == 0) break;
    begin += size;
  }
  return {begin, size, size, true};
}

struct Signs {
  uint64_t key;
  bool before, after;  // whether signs are flipped before or after the transform
};

// Returns the place of element i in shared memory. The padding keeps two threads of a warp from
// meeting in one bank.
__device__ int Padded(int i) { return i + i / 32; }

// Draws the random numbers of the tile's signs, from that of element begin / 128 * 128 on.
__device__ void DrawSigns(int64_t begin, uint64_t key, uint32_t* numbers) {
  if (threadIdx.x >= kSignBlocks) return;
  uint32_t four[4];
  PhiloxNumbers(key, begin / 128 + threadIdx.x, four);
  for (int k = 0; k < 4; ++k) numbers[4 * threadIdx.x + k] = four[k];
}

// Returns x with the sign of element i applied: bit i of the numbers, moved to bit 31, flips the
// float's own.
__device__ float Signed(float x, const uint32_t* numbers, int i) {
  return __uint_as_float(__float_as_uint(x) ^ (((numbers[i / 32] >> (i % 32)) & 1u) << 31));
}

struct Limit {
  uint32_t most;  // bits of the largest magnitude allowed
  uint32_t* refused;
};

__device__ void Report(float x, const Limit& limit) {
  const uint32_t magnitude = __float_as_uint(x) & kMagnitudeMask;
  if (magnitude > limit.most) atomicMax(limit.refused, magnitude);
}

// Does the steps h = 2^bit for `first` <= bit < min(first + 4, bits). Each thread takes the 16
// elements of the tile that these steps combine.
__device__ void Steps(int first, int bits, float* values) {
  // The 16 elements differ in bits low to low + 3 of their place; the other bits are the thread's.
  const int low = min(first, kTileBits - 4), t = static_cast<int>(threadIdx.x);
  const int base = (t & ((1 << low) - 1)) | (t >> low) << (low + 4);
  float v[16];
#pragma unroll
  for (int j = 0; j < 16; ++j) v[j] = values[Padded(base | j << low)];
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    if (low + s < first || low + s >= bits) continue;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      if ((j >> s & 1) != 0) continue;
      const float a = v[j], b = v[j | 1 << s];
      v[j] = a + b;
      v[j | 1 << s] = a - b;
    }
  }
#pragma unroll
  for (int j = 0; j < 16; ++j) values[Padded(base | j << low)] = v[j];
}

// Transforms tiles. Stretches that are not complete yet go to `between`.
template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    TileKernel(const From* from, float* between, To* to, Plan plan, Signs signs, Limit limit) {
  __shared__ float values[kTile + kTile / 32];
  __shared__ uint32_t numbers[4 * kSignBlocks];
  const Stretches stretches = StretchesOf(plan, blockIdx.x);
  const int first_sign = static_cast<int>(stretches.begin % 128);
  DrawSigns(stretches.begin, signs.key, numbers);
  __syncthreads();
  for (int i = 4 * threadIdx.x; i < kTile; i += 4 * kThreads) {
    float v[4];
    LoadVector(from + stretches.begin + i, stretches.length - i, v);
    for (int k = 0; k < 4; ++k) {
      Report(v[k], limit);
      values[Padded(i + k)] = signs.before ? Signed(v[k], numbers, first_sign + i + k) : v[k];
    }
  }
  __syncthreads();
  int bits = 0;
  while (1 << bits < stretches.size) ++bits;
  for (int first = 0; first < bits; first += 4) {
    Steps(first, bits, values);
    __syncthreads();
  }
  const float factor = stretches.are_whole ? InverseRoot(stretches.size) : 1.0f;
  const bool flips = signs.after && stretches.are_whole;
  for (int i = 4 * threadIdx.x; i < stretches.length; i += 4 * kThreads) {
    float v[4];
    for (int k = 0; k < 4; ++k) {
      const float x = values[Padded(i + k)] * factor;
      v[k] = flips ? Signed(x, numbers, first_sign + i + k) : x;
    }
    if (stretches.are_whole) {
      StoreVector(v, stretches.length - i, to + stretches.begin + i);
    } else {
      StoreVector(v, stretches.length - i, between + stretches.begin + i);
    }
  }
}

// Does the last steps of stretches of kParts tiles, from `begin` on. A thread takes four neighbours
// of each tile of a stretch.
template <int kParts, typename To>
__global__ void LastSteps(const float* from, To* to, int64_t begin, Signs signs) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stretch = index / (kTile / 4), within = index % (kTile / 4) * 4;
  const int64_t first = begin + stretch * kParts * kTile + within;
  float v[kParts][4];
  LoadVectors(from + first, kTile, v);
  for (int step = 1; step < kParts; step *= 2) {
    for (int j = 0; j < kParts; ++j) {
      if ((j & step) != 0) continue;
      for (int k = 0; k < 4; ++k) {
        const float a = v[j][k], b = v[j | step][k];
        v[j][k] = a + b;
        v[j | step][k] = a - b;
      }
    }
  }
  const float factor = InverseRoot(int64_t{kParts} * kTile);
  for (int j = 0; j < kParts; ++j) {
    const int64_t element = first + j * kTile;
    uint32_t numbers[4] = {};
    if (signs.after) PhiloxNumbers(signs.key, element / 128, numbers);
    for (int k = 0; k < 4; ++k) {
      v[j][k] = Signed(v[j][k] * factor, numbers, static_cast<int>(element % 128) + k);
    }
    StoreVector(v[j], 4, to + element);
  }
}

template <int kParts, typename To>
Error SubmitLastSteps(CudaDevice* device, const float* from, To* to, int64_t begin, int64_t end,
                      const Signs& signs) {
  constexpr int kLastThreads = 256;
  static_assert(kTile / 4 % kLastThreads == 0, "a block of threads stays within a stretch");
  return Launch(device, BlocksFor((end - begin) / kParts / 4, kLastThreads), dim3(kLastThreads),
                LastSteps<kParts, To>, from, to, begin, signs);
}

// Submits a rotation. `between`, which may be `from` or `to`, is for stretches longer than a tile.
template <typename From, typename To>
Error Submit(CudaDevice* device, const From* from, float* between, To* to, int64_t n,
             uint32_t block, const Signs& signs, const RotationLimit& limit) {
  const int64_t step = std::min<int64_t>(block, 2 * kTile);
  Plan plan;
  plan.total = n;
  plan.main = n / step * step;
  plan.main_tiles = (plan.main + kTile - 1) / kTile;
  plan.size = std::min<int>(block, kTile);
  plan.main_is_whole = block <= kTile;
  const int64_t tiles = plan.main_tiles + __builtin_popcountll(n - plan.main);
  RETURN_ERROR(Launch(device, BlocksFor(tiles, 1), dim3(kThreads), TileKernel<From, To>, from,
                      between, to, plan, signs, Limit{BitsOf(limit.most), limit.refused}));
  if (plan.main_is_whole) return Error{};
  // Submits the last steps of the longest stretches, and then those of a rest of two tiles, if any.
  const int64_t longest = n / block * block;
  RETURN_ERROR(block == 4 * kTile ? SubmitLastSteps<4>(device, between, to, 0, longest, signs)
                                  : SubmitLastSteps<2>(device, between, to, 0, longest, signs));
  return SubmitLastSteps<2>(device, between, to, longest, plan.main, signs);
}

}  // namespace

Error SubmitRotate(CudaDevice* device, const TensorView& x, uint32_t block, uint64_t key,
                   const RotationLimit& limit, float* to) {
  const Signs signs = {key, /*before=*/true, /*after=*/false};
  return WithTypedData(x, [&](const auto* elements) {
    return Submit(device, elements, to, to, x.elements(), block, signs, limit);
  });
}

Error SubmitRotateBack(CudaDevice* device, float* from, uint32_t block, uint64_t key,
                       const RotationLimit& limit, const TensorView& x) {
  const Signs signs = {key, /*before=*/false, /*after=*/true};
  return WithTypedData(x, [&](auto* elements) {
    return Submit(device, from, from, elements, x.elements(), block, signs, limit);
  });
}

}  // namespace thinwire
