// Accesses 16 bytes of neighbouring elements at once. Kernels take the number of elements as a
// template parameter: kWide<T> if rows and memory allow it, else 1.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire::cuda {

constexpr int kThreads = 256;  // threads of a block
constexpr int kWarps = kThreads / 32;

// Returns blocks that take `each` of n elements, for kernels whose blocks do not loop. CUDA refuses
// more than 2^31 - 1 blocks.
inline dim3 BlocksWith(int64_t each, int64_t n) { return BlocksFor(n, each, 0xFFFFFFFF); }

template <typename T>
constexpr int kWide = 16 / sizeof(T);

// Loads kN neighbours, widened to fp32. `from` is aligned to 16 bytes unless kN is 1.
template <int kN, typename T>
__device__ inline void LoadAligned(const T* from, float (&x)[kN]) {
  if constexpr (kN == 1) {
    x[0] = Load(from);
  } else {
    LoadVector<kN>(static_cast<const T*>(__builtin_assume_aligned(from, 16)), kN, x);
  }
}

// Returns the same address in global memory. The empty instruction hides from nvcc how the address
// was computed. Knowing that an index is a multiple of a vector, it stores elements one by one.
template <typename T>
__device__ inline T* Opaque(T* to) {
#ifdef __CUDA_ARCH__
  size_t address = __cvta_generic_to_global(to);
  asm("" : "+l"(address));
  return static_cast<T*>(__cvta_global_to_generic(address));
#else
  return to;
#endif
}

// Stores kN neighbours. `to`, which is not in shared memory, is aligned to 16 bytes or to the
// vector's size, whichever is less.
template <int kN, typename T>
__device__ inline void StoreAligned(const float (&x)[kN], T* to) {
  if constexpr (kN == 1) {
    Store(x[0], to);
  } else if constexpr (kN <= kWide<T>) {
    bf16_internal::Wide<kN>::Store(x, Opaque(to));
  } else {
    bf16_internal::Wide<kN>::Store(x, static_cast<T*>(__builtin_assume_aligned(to, 16)));
  }
}

// Returns x as it is read back after it has been stored as a T.
template <typename T>
__device__ inline float Rounded(float x) {
  T stored;
  Store(x, &stored);
  return Load(&stored);
}

// Returns whether all addresses are multiples of 16 bytes; null is.
template <typename... P>
bool AreAligned(const P*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

template <typename T, int kN>
struct Elements {
  using Type = T;
  static constexpr int kVector = kN;
};

// Calls body(Elements<T, kN>()) for the element type, with kN = kWide<T> if they are `wide`, else
// 1.
template <typename Body>
Error WithElements(DType type, bool wide, const Body& body) {
  if (type == DType::kF32) {
    return wide ? body(Elements<float, kWide<float>>()) : body(Elements<float, 1>());
  }
  return wide ? body(Elements<uint16_t, kWide<uint16_t>>()) : body(Elements<uint16_t, 1>());
}

// Returns kWide of an element type.
inline int64_t WideOf(DType type) { return static_cast<int64_t>(16 / SizeOf(type)); }

// Returns whether rows of the last axis of x consist of whole vectors and the memory, with that of
// the pointers, is aligned to them.
template <typename... P>
bool IsWide(const TensorView& x, const P*... pointers) {
  return x.dims[x.rank - 1] % WideOf(x.dtype) == 0 && AreAligned(x.data, pointers...);
}

}  // namespace thinwire::cuda
