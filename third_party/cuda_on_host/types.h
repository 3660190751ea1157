// CUDA's keywords and small types, for a host compiler.
#pragma once

#include <math.h>

#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
// Thread-local memory does for shared memory: one host thread runs all threads of a block, and the
// blocks one after the other.
#define __shared__ static thread_local

#define CUDA_ON_HOST_VECTORS(T, Name, align2, align4)                \
  struct alignas(align2) Name##2 {                                   \
    T x, y;                                                          \
  };                                                                 \
  struct Name##3 {                                                   \
    T x, y, z;                                                       \
  };                                                                 \
  struct alignas(align4) Name##4 {                                   \
    T x, y, z, w;                                                    \
  };                                                                 \
  inline Name##2 make_##Name##2(T x, T y) { return {x, y}; }         \
  inline Name##3 make_##Name##3(T x, T y, T z) { return {x, y, z}; } \
  inline Name##4 make_##Name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUDA_ON_HOST_VECTORS(signed char, char, 2, 4)
CUDA_ON_HOST_VECTORS(unsigned char, uchar, 2, 4)
CUDA_ON_HOST_VECTORS(short, short, 4, 8)
CUDA_ON_HOST_VECTORS(unsigned short, ushort, 4, 8)
CUDA_ON_HOST_VECTORS(int, int, 8, 16)
CUDA_ON_HOST_VECTORS(unsigned int, uint, 8, 16)
CUDA_ON_HOST_VECTORS(long long, longlong, 16, 16)
CUDA_ON_HOST_VECTORS(unsigned long long, ulonglong, 16, 16)
CUDA_ON_HOST_VECTORS(float, float, 8, 16)
CUDA_ON_HOST_VECTORS(double, double, 16, 16)
#undef CUDA_ON_HOST_VECTORS

struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }

  unsigned x, y, z;
};
