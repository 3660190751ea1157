#include "nn/cuda/kernels.h"
#include "nn/cuda/map.cuh"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {
namespace {

struct ReluOf {
  __device__ float operator()(float x) const { return x < 0 ? 0 : x; }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Masked {
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : 0; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// The operations of nn/cpu/elementwise.cc, each rounded by itself.
struct Combined {
  template <int kN>
  struct Values {
    float a[kN], b[kN];
  };
  Combination c;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    LoadAligned(c.a + at, values->a);
    if (c.b != nullptr) LoadAligned(c.b + at, values->b);
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      values->a[i] *= c.alpha;
      if (c.b != nullptr) values->a[i] += c.beta * values->b[i];
    }
    StoreAligned(values->a, c.sum + at);
  }
};

}  // namespace

Error Kernels::Relu(const TensorView& x, const TensorView& y) {
  return MapOne<ReluOf>(device_, x, y);
}

Error Kernels::ReluBackward(const TensorView& y, const TensorView& dy, const TensorView& dx) {
  return MapTwo<Masked>(device_, y, dy, dx);
}

Error Kernels::Add(const TensorView& a, const TensorView& b, const TensorView& sum) {
  return MapTwo<Sum>(device_, a, b, sum);
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
  return from.dtype == DType::kF32 ? MapOne<8, Same, float, uint16_t>(device, from, to)
                                   : MapOne<8, Same, uint16_t, float>(device, from, to);
}

Error Kernels::Combine(const Combination& arguments) {
  const Combination& c = arguments;
  return LaunchMap<kWide<float>>(device_, AreAligned(c.a, c.b, c.sum), c.n, Combined{c});
}

Error Kernels::Zero(float* values, int64_t n) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  if (n == 0) return Error{};
  CUDA_RETURN_IF_ERROR(cudaMemsetAsync(values, 0, static_cast<size_t>(n) * sizeof(float), stream));
  return Error{};
}

}  // namespace thinwire::cuda
