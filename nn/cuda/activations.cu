#include <cmath>

#include "nn/cuda/kernels.h"
#include "nn/cuda/map.cuh"

namespace thinwire::cuda {
namespace {

// Returns x, or `bound` if that is greater (or less). A NaN passes, as it compares false.
__device__ inline float AtLeast(float bound, float x) { return x < bound ? bound : x; }
__device__ inline float AtMost(float bound, float x) { return x > bound ? bound : x; }

// Returns 0 below -87, where the result is no normal fp32 number.
__device__ inline float Sigmoid(float x) {
  constexpr float kLog2E = 1.44269504f;
  return __fdividef(1.0f, 1.0f + exp2f(-kLog2E * x));
}

// A function's value and derivative at an element. x is first limited to the range in which results
// still change in fp32.
struct ValueAndSlope {
  float value, slope;
};

// Computes 0.5 (1 + tanh(u)) as sigmoid(2 u). Beyond 12 in magnitude it is 0 or 1 in fp32, and its
// slope 0.
struct TanhGelu {
  __device__ ValueAndSlope operator()(float x) const {
    constexpr float kFactor = 1.59576912f;  // 2 sqrt(2 / pi)
    const float near = AtMost(12.0f, AtLeast(-12.0f, x));
    const float square = near * near;
    const float s = Sigmoid(near * fmaf(kFactor * 0.044715f, square, kFactor));
    const float ds = fmaf(-s, s, s) * fmaf(3 * kFactor * 0.044715f, square, kFactor);
    return {AtLeast(-12.0f, x) * s, fmaf(near, ds, s)};
  }
};

// Computes Phi(x) as erfc(-x / sqrt(2)) / 2.
struct ExactGelu {
  __device__ ValueAndSlope operator()(float x) const {
    const float near = AtMost(13.0f, AtLeast(-13.0f, x));
    const float phi = 0.5f * erfcf(-0.707106781f * near);
    const float density = 0.398942280f * expf(-0.5f * near * near);  // 1 / sqrt(2 pi)
    return {AtLeast(-13.0f, x) * phi, near * density + phi};
  }
};

// Computes tanh(x). Beyond 10 in magnitude it is -1 or 1 in fp32, and its slope 0.
struct Tanh {
  __device__ ValueAndSlope operator()(float x) const {
    const float tanh = tanhf(AtMost(10.0f, AtLeast(-10.0f, x)));
    return {tanh, fmaf(-tanh, tanh, 1.0f)};
  }
};

// Returns the result of `use` with the function.
template <typename Use>
Error With(Pointwise function, const Use& use) {
  switch (function) {
    case Pointwise::kTanhGelu:
      return use(TanhGelu());
    case Pointwise::kExactGelu:
      return use(ExactGelu());
    case Pointwise::kTanh:
      break;
  }
  return use(Tanh());
}

template <typename Function>
struct Value {
  __device__ float operator()(float x) const { return Function()(x).value; }
};
template <typename Function>
struct Chained {
  __device__ float operator()(float x, float dy) const { return dy * Function()(x).slope; }
};

// Element `at` of y belongs to column `at` mod features of a row of x, whose first half is the
// gate.
template <typename T>
struct Gated {
  template <int kN>
  struct Values {
    float gate[kN], up[kN];
  };
  const T* x;
  T* y;
  int64_t features;

  __device__ int64_t GateAt(int64_t at) const { return at + at / features * features; }
  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    LoadAligned(x + GateAt(at), values->gate);
    LoadAligned(x + GateAt(at) + features, values->up);
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      values->gate[i] = values->gate[i] * Sigmoid(values->gate[i]) * values->up[i];
    }
    StoreAligned(values->gate, y + at);
  }
};

// Its gradient, with silu'(g) = s (1 + g (1 - s)) and s = sigmoid(g).
template <typename T>
struct GatedBackward {
  template <int kN>
  struct Values {
    float gate[kN], up[kN], dy[kN];
  };
  Gated<T> forward;  // y is not read
  const T* dy;
  T* dx;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    typename Gated<T>::template Values<kN> halves;
    forward.Read(at, &halves);
    LoadAligned(dy + at, values->dy);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      values->gate[i] = halves.gate[i];
      values->up[i] = halves.up[i];
    }
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
    const int64_t gate_at = forward.GateAt(at);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float g = values->gate[i], s = Sigmoid(g);
      values->gate[i] = values->dy[i] * (values->up[i] * (s * (g * (1.0f - s) + 1.0f)));
      values->up[i] = values->dy[i] * (g * s);
    }
    StoreAligned(values->gate, dx + gate_at);
    StoreAligned(values->up, dx + gate_at + forward.features);
  }
};

template <typename T>
Error SwigluOf(CudaDevice* device, const TensorView& x, const TensorView& y, int64_t features) {
  const bool wide = features % kWide<T> == 0 && AreAligned(x.data, y.data);
  return LaunchMap<kWide<T>>(device, wide, y.elements(), Gated<T>{x.as<T>(), y.as<T>(), features});
}

template <typename T>
Error SwigluBackwardOf(CudaDevice* device, const TensorView& x, const TensorView& dy,
                       const TensorView& dx, int64_t features) {
  const bool wide = features % kWide<T> == 0 && AreAligned(x.data, dy.data, dx.data);
  const GatedBackward<T> operation{{x.as<T>(), nullptr, features}, dy.as<T>(), dx.as<T>()};
  return LaunchMap<kWide<T>>(device, wide, dy.elements(), operation);
}

}  // namespace

Error Apply(CudaDevice* device, Pointwise function, const TensorView& x, const TensorView& y) {
  return With(function, [&](auto f) { return MapOne<Value<decltype(f)>>(device, x, y); });
}

Error ApplyBackward(CudaDevice* device, Pointwise function, const TensorView& x,
                    const TensorView& dy, const TensorView& dx) {
  return With(function, [&](auto f) { return MapTwo<Chained<decltype(f)>>(device, x, dy, dx); });
}

Error Kernels::Swiglu(const TensorView& x, const TensorView& y) {
  const int64_t features = y.dims[y.rank - 1];
  return x.dtype == DType::kF32 ? SwigluOf<float>(device_, x, y, features)
                                : SwigluOf<uint16_t>(device_, x, y, features);
}

Error Kernels::SwigluBackward(const TensorView& x, const TensorView& dy, const TensorView& dx) {
  const int64_t features = dy.dims[dy.rank - 1];
  return x.dtype == DType::kF32 ? SwigluBackwardOf<float>(device_, x, dy, dx, features)
                                : SwigluBackwardOf<uint16_t>(device_, x, dy, dx, features);
}

}  // namespace thinwire::cuda
