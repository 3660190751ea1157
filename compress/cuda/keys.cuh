// Elements of Keys (keys.h) in a kernel: float, bf16 (uint16_t) or random draws.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/keys.h"
#include "compress/cuda/philox.cuh"
#include "tensor/cuda/bf16.cuh"

namespace thinwire {

constexpr uint32_t kMagnitudeBits = 0x7FFFFFFFu;
constexpr uint32_t kNonFiniteMagnitude = 0x7F800000u;  // from here on not finite

namespace keys_internal {

// Returns four bits: bit k says whether element i + k has support. i is a multiple of 4.
__device__ inline uint32_t SupportOfFour(const uint32_t* support, int64_t i) {
  return support == nullptr ? 15 : support[i / 32] >> (i % 32) & 15;
}

}  // namespace keys_internal

template <typename T>
struct TypedKeys {
  const T* data;
  const uint32_t* support;
  int64_t total, elements;

  __device__ uint32_t Magnitude(int64_t i) const {
    if (support != nullptr && !IsSet(support, i)) return 0;
    return __float_as_uint(Load(data + i)) & kMagnitudeBits;
  }
  // Sets `magnitudes` to those of four neighbours from i on, a multiple of 4; zeros from `total`
  // on.
  __device__ void Magnitudes(int64_t i, uint32_t (&magnitudes)[4]) const {
    float x[4];
    LoadVector(data + i, total - i, x);
    const uint32_t supported = i < total ? keys_internal::SupportOfFour(support, i) : 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      magnitudes[k] = (supported >> k & 1) != 0 ? __float_as_uint(x[k]) & kMagnitudeBits : 0;
    }
  }
};

template <typename T>
TypedKeys<T> As(const Keys& keys) {
  return {static_cast<const T*>(keys.data), keys.support, keys.total, keys.elements};
}

constexpr double kMostDraw = 0x1p30;

// Computes the draws of four elements from i on. A draw is the upper 30 bits of a random number,
// plus one: so none is zero, which is never kept, and all are the bits of finite floats.
__device__ inline void DrawFour(uint64_t seed, int64_t i, uint32_t (&draws)[4]) {
  PhiloxNumbers(seed, static_cast<uint64_t>(i / 4), draws);
#pragma unroll
  for (int k = 0; k < 4; ++k) draws[k] = (draws[k] >> 2) + 1;
}

// Like TypedKeys, but without memory: a draw is computed each time it is read.
struct DrawnKeys {
  uint64_t seed;
  const uint32_t* support;
  int64_t total, elements;

  __device__ uint32_t Magnitude(int64_t i) const {
    if (support != nullptr && !IsSet(support, i)) return 0;
    uint32_t draws[4];
    DrawFour(seed, i, draws);
    const uint32_t of_two[2] = {(i & 2) != 0 ? draws[2] : draws[0],
                                (i & 2) != 0 ? draws[3] : draws[1]};
    return (i & 1) != 0 ? of_two[1] : of_two[0];
  }
  __device__ void Magnitudes(int64_t i, uint32_t (&magnitudes)[4]) const {
    DrawFour(seed, i, magnitudes);
    const uint32_t supported = i < total ? keys_internal::SupportOfFour(support, i) : 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if ((supported >> k & 1) == 0 || i + k >= total) magnitudes[k] = 0;
    }
  }
};

// Call call(keys) with the keys in the type that a kernel takes. WithKeysInMemory does so for keys
// that have data.
template <typename Call>
auto WithKeysInMemory(const Keys& keys, const Call& call) {
  return keys.dtype == DType::kF32 ? call(As<float>(keys)) : call(As<uint16_t>(keys));
}
template <typename Call>
auto WithTypedKeys(const Keys& keys, const Call& call) {
  if (keys.data != nullptr) return WithKeysInMemory(keys, call);
  return call(DrawnKeys{keys.seed, keys.support, keys.total, keys.elements});
}

}  // namespace thinwire
