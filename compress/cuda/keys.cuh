// The elements of Keys (keys.h) in a kernel, for elements of float or bf16 (uint16_t).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/bitmap.cuh"
#include "compress/cuda/keys.h"
#include "tensor/cuda/bf16.cuh"

namespace thinwire {

constexpr uint32_t kMagnitudeBits = 0x7FFFFFFFu;
constexpr uint32_t kNonFiniteMagnitude = 0x7F800000u;  // from here on

template <typename T>
struct TypedKeys {
  const T* data;
  const uint32_t* support;
  int64_t total, elements;

  __device__ uint32_t Magnitude(int64_t i) const {
    if (support != nullptr && !IsSet(support, i)) return 0;
    return __float_as_uint(Load(data + i)) & kMagnitudeBits;
  }
};

template <typename T>
TypedKeys<T> As(const Keys& keys) {
  return {static_cast<const T*>(keys.data), keys.support, keys.total, keys.elements};
}

}  // namespace thinwire
