// Reads and writes elements of fp32 (float) or bf16 (uint16_t) as floats, with the same bits as
// compress/half.h. Element types are template parameters, so that one kernel serves both.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire {

// Rounds to the nearest bf16, ties to even, by keeping the upper 16 bits. It first adds just under
// half of their unit, plus one if they are odd; a carry out of the lower 16 bits then rounds up.
// Bits above those of infinity are a NaN, which becomes a quiet NaN instead.
__device__ inline uint16_t BFloatOf(float x) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
__device__ inline float OfBFloat(uint16_t b) {
  return __uint_as_float(static_cast<uint32_t>(b) << 16);
}

__device__ inline float Load(const float* from) { return *from; }
__device__ inline float Load(const uint16_t* from) { return OfBFloat(*from); }
__device__ inline void Store(float x, float* to) { *to = x; }
__device__ inline void Store(float x, uint16_t* to) { *to = BFloatOf(x); }

namespace bf16_internal {

// `bytes` is a power of two, so the bits below it are the remainder.
__device__ inline bool IsAligned(const void* p, unsigned bytes) {
  return (reinterpret_cast<uintptr_t>(p) & (bytes - 1)) == 0;
}

// Unpacks two neighbouring bf16 of one word, the first in its lower half. Each is the upper half of
// an fp32.
__device__ inline void Widen(uint32_t two, float* x) {
  x[0] = __uint_as_float(two << 16);
  x[1] = __uint_as_float(two & 0xFFFF0000u);
}
__device__ inline uint32_t Narrow(const float* x) {
#ifdef __CUDA_ARCH__
  // One instruction rounds both, but it changes the bits of NaNs, which therefore take the other
  // path.
  if (x[0] == x[0] && x[1] == x[1]) {
    uint32_t two;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(x[1]), "f"(x[0]));
    return two;
  }
#endif
  return BFloatOf(x[0]) | static_cast<uint32_t>(BFloatOf(x[1])) << 16;
}

__device__ inline void LoadFour(const float* from, float* x) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
}
__device__ inline void StoreFour(const float* x, float* to) {
  float4 four;
  four.x = x[0], four.y = x[1], four.z = x[2], four.w = x[3];
  *reinterpret_cast<float4*>(to) = four;
}

template <int kN>
struct Wide;  // kN elements by loads and stores of up to 16 bytes, aligned to them

template <>
struct Wide<4> {
  static constexpr unsigned kFloatBytes = 16, kBFloatBytes = 8;

  __device__ static void Load(const float* from, float* x) { LoadFour(from, x); }
  __device__ static void Load(const uint16_t* from, float* x) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    Widen(words.x, x), Widen(words.y, x + 2);
  }
  __device__ static void Store(const float* x, float* to) { StoreFour(x, to); }
  __device__ static void Store(const float* x, uint16_t* to) {
    uint2 words;
    words.x = Narrow(x), words.y = Narrow(x + 2);
    *reinterpret_cast<uint2*>(to) = words;
  }
};

template <>
struct Wide<8> {
  static constexpr unsigned kFloatBytes = 16, kBFloatBytes = 16;

  __device__ static void Load(const float* from, float* x) {
    LoadFour(from, x), LoadFour(from + 4, x + 4);
  }
  __device__ static void Load(const uint16_t* from, float* x) {
    const uint4 words = *reinterpret_cast<const uint4*>(from);
    Widen(words.x, x), Widen(words.y, x + 2), Widen(words.z, x + 4), Widen(words.w, x + 6);
  }
  __device__ static void Store(const float* x, float* to) {
    StoreFour(x, to), StoreFour(x + 4, to + 4);
  }
  __device__ static void Store(const float* x, uint16_t* to) {
    uint4 words;
    words.x = Narrow(x), words.y = Narrow(x + 2), words.z = Narrow(x + 4), words.w = Narrow(x + 6);
    *reinterpret_cast<uint4*>(to) = words;
  }
};

// Returns whether `p` is aligned as the loads of Wide<kN> need it.
template <int kN, typename T>
__device__ inline bool IsWide(const T* p) {
  return IsAligned(p, sizeof(T) == 4 ? Wide<kN>::kFloatBytes : Wide<kN>::kBFloatBytes);
}

}  // namespace bf16_internal

// Loads kN (4 or 8) neighbours, or only the first n if fewer are left; x[n..] are then zero. Fast
// if n >= kN and `from` is aligned to 16 bytes or to the vector's size, whichever is less.
template <int kN, typename T>
__device__ inline void LoadVector(const T* from, int64_t n, float (&x)[kN]) {
  if (n >= kN && bf16_internal::IsWide<kN>(from)) {
    bf16_internal::Wide<kN>::Load(from, x);
    return;
  }
#pragma unroll
  for (int i = 0; i < kN; ++i) x[i] = i < n ? Load(from + i) : 0.0f;
}
// Loads kCount whole vectors, one every `stride` elements, a multiple of kN. All loads are issued
// before the first is waited for.
template <int kN, int kCount, typename T>
__device__ inline void LoadVectors(const T* from, int64_t stride, float (&x)[kCount][kN]) {
  if (bf16_internal::IsWide<kN>(from)) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) bf16_internal::Wide<kN>::Load(from + j * stride, x[j]);
    return;
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
#pragma unroll
    for (int i = 0; i < kN; ++i) x[j][i] = Load(from + j * stride + i);
  }
}
// Stores the first min(n, kN) elements.
template <int kN, typename T>
__device__ inline void StoreVector(const float (&x)[kN], int64_t n, T* to) {
  if (n >= kN && bf16_internal::IsWide<kN>(to)) {
    bf16_internal::Wide<kN>::Store(x, to);
    return;
  }
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    if (i < n) Store(x[i], to + i);
  }
}

}  // namespace thinwire
