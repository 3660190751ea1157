// Elementwise passes over tensors.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/device.h"
#include "tensor/cuda/launch.h"
#include "tensor/tensor.h"

namespace thinwire::cuda {

// Computes to[i] = Function(from[i]).
template <typename Function, typename From, typename To>
struct Unary {
  template <int kN>
  struct Values {
    float x[kN];
  };
  const From* from;
  To* to;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    LoadAligned(from + at, values->x);
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
#pragma unroll
    for (float& x : values->x) x = Function()(x);
    StoreAligned(values->x, to + at);
  }
};

// Computes to[i] = Function(a[i], b[i]).
template <typename Function, typename T>
struct Binary {
  template <int kN>
  struct Values {
    float a[kN], b[kN];
  };
  const T* a;
  const T* b;
  T* to;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    LoadAligned(a + at, values->a);
    LoadAligned(b + at, values->b);
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
#pragma unroll
    for (int i = 0; i < kN; ++i) values->a[i] = Function()(values->a[i], values->b[i]);
    StoreAligned(values->a, to + at);
  }
};

// Vectors that a thread reads before it writes the first, so that loads overlap.
constexpr int kVectorsEach = 4;

// Applies `operation`. A block has kVectorsEach * 256 neighbouring vectors. Elements after the last
// whole vector go to the first threads, one each.
template <int kN, typename Operation>
__global__ void Map(Operation operation, int64_t n) {
  using Values = typename Operation::template Values<kN>;
  const int64_t vectors = n / kN, block = blockIdx.x;
  const int64_t first = block * kVectorsEach * kThreads + threadIdx.x;
  if (first + (kVectorsEach - 1) * kThreads < vectors) {
    Values values[kVectorsEach];
#pragma unroll
    for (int i = 0; i < kVectorsEach; ++i) {
      operation.Read((first + i * kThreads) * kN, &values[i]);
    }
#pragma unroll
    for (int i = 0; i < kVectorsEach; ++i) {
      operation.Write((first + i * kThreads) * kN, &values[i]);
    }
  } else {
    for (int64_t i = first; i < vectors && i < first + kVectorsEach * kThreads; i += kThreads) {
      Values values;
      operation.Read(i * kN, &values);
      operation.Write(i * kN, &values);
    }
  }
  const int64_t rest = vectors * kN + block * kThreads + threadIdx.x;
  if (rest < n) {
    typename Operation::template Values<1> value;
    operation.Read(rest, &value);
    operation.Write(rest, &value);
  }
}

// Launches Map; kN is the number of elements of a vector if memory is `wide`.
template <int kN, typename Operation>
Error LaunchMap(CudaDevice* device, bool wide, int64_t n, const Operation& operation) {
  constexpr int64_t kBlock = kVectorsEach * kThreads;
  return wide ? Launch(device, BlocksWith(kBlock * kN, n), dim3(kThreads), Map<kN, Operation>,
                       operation, n)
              : Launch(device, BlocksWith(kBlock, n), dim3(kThreads), Map<1, Operation>, operation,
                       n);
}

template <int kN, typename Function, typename From, typename To>
Error MapOne(CudaDevice* device, const TensorView& from, const TensorView& to) {
  return LaunchMap<kN>(device, AreAligned(from.data, to.data), from.elements(),
                       Unary<Function, From, To>{from.as<From>(), to.as<To>()});
}
template <typename Function>
Error MapOne(CudaDevice* device, const TensorView& from, const TensorView& to) {
  return from.dtype == DType::kF32 ? MapOne<4, Function, float, float>(device, from, to)
                                   : MapOne<8, Function, uint16_t, uint16_t>(device, from, to);
}

template <typename Function, typename T>
Error MapTwo(CudaDevice* device, const TensorView& a, const TensorView& b, const TensorView& to) {
  return LaunchMap<kWide<T>>(device, AreAligned(a.data, b.data, to.data), a.elements(),
                             Binary<Function, T>{a.as<T>(), b.as<T>(), to.as<T>()});
}
template <typename Function>
Error MapTwo(CudaDevice* device, const TensorView& a, const TensorView& b, const TensorView& to) {
  return a.dtype == DType::kF32 ? MapTwo<Function, float>(device, a, b, to)
                                : MapTwo<Function, uint16_t>(device, a, b, to);
}

}  // namespace thinwire::cuda
