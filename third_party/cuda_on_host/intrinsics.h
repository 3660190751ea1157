// The functions of device code that tensor/cuda/README.md allows.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "third_party/cuda_on_host/block.h"

// Parameters that take the place of each call, for messages about threads that do not meet.
#define CUDA_ON_HOST_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CUDA_ON_HOST_HERE) {
  cuda_on_host::MeetBlock({"__syncthreads", file, line}, false);
}
inline int __syncthreads_or(int predicate, CUDA_ON_HOST_HERE) {
  return cuda_on_host::MeetBlock({"__syncthreads_or", file, line}, predicate != 0) != 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_ON_HOST_HERE) {
  cuda_on_host::MeetWarp({"__syncwarp", file, line}, mask, 0);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_HOST_HERE) {
  return cuda_on_host::MeetWarp({"__ballot_sync", file, line}, mask, predicate != 0).ballot;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_HOST_HERE) {
  return cuda_on_host::MeetWarp({"__all_sync", file, line}, mask, predicate == 0).ballot == 0;
}

namespace cuda_on_host {

template <typename To, typename From>
To BitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

inline int Lane() { return static_cast<int>(threadIdx.x % kWarp); }

// Returns the value of lane `source`, or one's own if that lane is not `inside` the segment.
template <typename T>
T Shuffle(const Site& site, unsigned mask, T value, int source, bool inside) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(value));
  bits = MeetWarp(site, mask, bits).of_lane[inside ? source : Lane()];
  memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace cuda_on_host

// The lanes exchange values within segments of `width`, a power of two. lane & -width is the first
// lane of the segment, and source & (width - 1) is the source within it.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_ON_HOST_HERE) {
  const int first = cuda_on_host::Lane() & -width;
  return cuda_on_host::Shuffle({"__shfl_sync", file, line}, mask, value,
                               first | (source & (width - 1)), true);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_HOST_HERE) {
  const int first = cuda_on_host::Lane() & -width;
  const int source = cuda_on_host::Lane() - static_cast<int>(delta);
  return cuda_on_host::Shuffle({"__shfl_up_sync", file, line}, mask, value, source,
                               source >= first);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_HOST_HERE) {
  const int first = cuda_on_host::Lane() & -width;
  const int source = cuda_on_host::Lane() + static_cast<int>(delta);
  return cuda_on_host::Shuffle({"__shfl_down_sync", file, line}, mask, value, source,
                               source < first + width);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CUDA_ON_HOST_HERE) {
  const int first = cuda_on_host::Lane() & -width;
  const int source = cuda_on_host::Lane() ^ lane_mask;
  return cuda_on_host::Shuffle({"__shfl_xor_sync", file, line}, mask, value, source,
                               source < first + width);
}
namespace cuda_on_host {

// Combines the values of a whole warp's lanes, of 32 bits.
template <typename T, typename Operation>
T ReduceWarp(const Site& site, unsigned mask, T value, Operation operation) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4);
  const WarpValues values = MeetWarp(site, mask, static_cast<uint32_t>(value));
  auto result = static_cast<T>(values.of_lane[0]);
  for (int lane = 1; lane < kWarp; ++lane) {
    result = operation(result, static_cast<T>(values.of_lane[lane]));
  }
  return result;
}

}  // namespace cuda_on_host

template <typename T>
T __reduce_add_sync(unsigned mask, T value, CUDA_ON_HOST_HERE) {
  const auto sum = [](T a, T b) {
    return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  };
  return cuda_on_host::ReduceWarp({"__reduce_add_sync", file, line}, mask, value, sum);
}
template <typename T>
T __reduce_min_sync(unsigned mask, T value, CUDA_ON_HOST_HERE) {
  const auto least = [](T a, T b) { return b < a ? b : a; };
  return cuda_on_host::ReduceWarp({"__reduce_min_sync", file, line}, mask, value, least);
}
template <typename T>
T __reduce_max_sync(unsigned mask, T value, CUDA_ON_HOST_HERE) {
  const auto most = [](T a, T b) { return b > a ? b : a; };
  return cuda_on_host::ReduceWarp({"__reduce_max_sync", file, line}, mask, value, most);
}
#undef CUDA_ON_HOST_HERE

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}

inline unsigned __float_as_uint(float x) { return cuda_on_host::BitsAs<unsigned>(x); }
inline int __float_as_int(float x) { return cuda_on_host::BitsAs<int>(x); }
inline float __fdividef(float a, float b) { return a / b; }  // CUDA's is only approximate
inline float __uint_as_float(unsigned x) { return cuda_on_host::BitsAs<float>(x); }
inline float __int_as_float(int x) { return cuda_on_host::BitsAs<float>(x); }

template <typename T>
T __ldg(const T* p) {
  return *p;
}

// Return the lesser and the greater of two numbers of one type.
#define CUDA_ON_HOST_MIN_MAX(T)                    \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
CUDA_ON_HOST_MIN_MAX(int)
CUDA_ON_HOST_MIN_MAX(unsigned int)
CUDA_ON_HOST_MIN_MAX(long)
CUDA_ON_HOST_MIN_MAX(unsigned long)
CUDA_ON_HOST_MIN_MAX(long long)
CUDA_ON_HOST_MIN_MAX(unsigned long long)
#undef CUDA_ON_HOST_MIN_MAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// Each returns the old value.
#define CUDA_ON_HOST_ATOMICS(T)                                                                \
  inline T atomicAdd(T* p, T value) { return __atomic_fetch_add(p, value, __ATOMIC_RELAXED); } \
  inline T atomicAnd(T* p, T value) { return __atomic_fetch_and(p, value, __ATOMIC_RELAXED); } \
  inline T atomicOr(T* p, T value) { return __atomic_fetch_or(p, value, __ATOMIC_RELAXED); }
CUDA_ON_HOST_ATOMICS(int)
CUDA_ON_HOST_ATOMICS(unsigned int)
CUDA_ON_HOST_ATOMICS(unsigned long long)
#undef CUDA_ON_HOST_ATOMICS

template <typename T>
T atomicMax(T* p, T value) {
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
