#include "nn/cuda/elementwise.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

template <typename T>
struct ReluOperation {
  template <int kN>
  struct Values {
    float x[kN];
  };
  const T* x;
  T* y;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    LoadAligned(x + at, values->x);
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
#pragma unroll
    for (float& v : values->x) v = v < 0 ? 0 : v;
    StoreAligned(values->x, y + at);
  }
};

template <typename T>
struct ReluBackwardOperation {
  template <int kN>
  struct Values {
    float y[kN], dy[kN];
  };
  const T* y;
  const T* dy;
  T* dx;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    LoadAligned(y + at, values->y);
    LoadAligned(dy + at, values->dy);
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
#pragma unroll
    for (int i = 0; i < kN; ++i) values->dy[i] = values->y[i] > 0 ? values->dy[i] : 0;
    StoreAligned(values->dy, dx + at);
  }
};

template <typename T>
struct AddOperation {
  template <int kN>
  struct Values {
    float a[kN], b[kN];
  };
  const T* a;
  const T* b;
  T* sum;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    LoadAligned(a + at, values->a);
    LoadAligned(b + at, values->b);
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
#pragma unroll
    for (int i = 0; i < kN; ++i) values->a[i] += values->b[i];
    StoreAligned(values->a, sum + at);
  }
};

template <typename From, typename To>
struct ConvertOperation {
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
    StoreAligned(values->x, to + at);
  }
};

constexpr int kVectorsEach = 4;  // of a thread, read before the first is written

// A block has kVectorsEach * 256 neighbouring vectors; what is left behind the last whole vector
// goes to the first threads, an element each.
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

// kN: of a vector, if memory is `wide`.
template <int kN, typename Operation>
Error LaunchMap(CudaDevice* device, bool wide, int64_t n, const Operation& operation) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  constexpr int64_t kBlock = kVectorsEach * kThreads;
  return wide ? Launch(stream, BlocksWith(kBlock * kN, n), dim3(kThreads), Map<kN, Operation>,
                       operation, n)
              : Launch(stream, BlocksWith(kBlock, n), dim3(kThreads), Map<1, Operation>, operation,
                       n);
}

template <typename T>
T* As(const TensorView& view) {
  return static_cast<T*>(view.data);
}

}  // namespace

Error Relu(CudaDevice* device, const TensorView& x, const TensorView& y) {
  const bool wide = AreAligned(x.data, y.data);
  if (x.dtype == DType::kF32) {
    return LaunchMap<4>(device, wide, x.elements(),
                        ReluOperation<float>{As<float>(x), As<float>(y)});
  }
  return LaunchMap<8>(device, wide, x.elements(),
                      ReluOperation<uint16_t>{As<uint16_t>(x), As<uint16_t>(y)});
}

Error ReluBackward(CudaDevice* device, const TensorView& y, const TensorView& dy,
                   const TensorView& dx) {
  const bool wide = AreAligned(y.data, dy.data, dx.data);
  if (y.dtype == DType::kF32) {
    return LaunchMap<4>(device, wide, y.elements(),
                        ReluBackwardOperation<float>{As<float>(y), As<float>(dy), As<float>(dx)});
  }
  return LaunchMap<8>(
      device, wide, y.elements(),
      ReluBackwardOperation<uint16_t>{As<uint16_t>(y), As<uint16_t>(dy), As<uint16_t>(dx)});
}

Error Add(CudaDevice* device, const TensorView& a, const TensorView& b, const TensorView& sum) {
  const bool wide = AreAligned(a.data, b.data, sum.data);
  if (a.dtype == DType::kF32) {
    return LaunchMap<4>(device, wide, a.elements(),
                        AddOperation<float>{As<float>(a), As<float>(b), As<float>(sum)});
  }
  return LaunchMap<8>(device, wide, a.elements(),
                      AddOperation<uint16_t>{As<uint16_t>(a), As<uint16_t>(b), As<uint16_t>(sum)});
}

Error Convert(CudaDevice* device, const TensorView& from, const TensorView& to) {
  const int64_t n = from.elements();
  if (from.dtype == to.dtype) {
    if (n == 0 || from.data == to.data) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device->Stream(&stream));
    CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to.data, from.data,
                                         static_cast<size_t>(n) * SizeOf(from.dtype),
                                         cudaMemcpyDeviceToDevice, stream));
    return Error{};
  }
  const bool wide = AreAligned(from.data, to.data);
  if (from.dtype == DType::kF32) {
    return LaunchMap<8>(device, wide, n,
                        ConvertOperation<float, uint16_t>{As<float>(from), As<uint16_t>(to)});
  }
  return LaunchMap<8>(device, wide, n,
                      ConvertOperation<uint16_t, float>{As<uint16_t>(from), As<float>(to)});
}

Error Zero(CudaDevice* device, float* values, int64_t n) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  if (n == 0) return Error{};
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(values, 0, static_cast<size_t>(n) * sizeof(float), stream));
  return Error{};
}

}  // namespace thinwire::cuda
