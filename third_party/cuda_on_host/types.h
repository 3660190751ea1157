// CUDA's keywords and small types, for a host compiler.
#pragma once

#include <math.h>

#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
// Thread-local memory does for shared memory: one host thread runs all threads of a block, and the
// blocks one after the other.
#define __shared__ static thread_local

struct alignas(8) uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }

  unsigned x, y, z;
};
