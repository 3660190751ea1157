#include "nn/cuda/kernels.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

template <typename T>
struct ForwardArguments {
  const T* x;
  const T* addend;  // null: x is normalised as it is
  T* sum;
  T* y;
  const float* scale;
  const float* bias;  // null: no bias
  float* mean;
  float* rstd;
  float epsilon;
  bool centred;  // else no mean is subtracted
  int64_t rows, features;
};

// Normalizes rows, each with kRowWarps warps, in up to three passes over a row: the addend and the
// mean, the variance around it, the result. The sum of squares alone would cancel in fp32.
template <typename T, int kN, int kRowWarps>
__global__ void NormalizeRow(ForwardArguments<T> a) {
  const RowThread<kRowWarps> thread;
  if (thread.row >= a.rows) return;
  const bool adds = a.addend != nullptr;
  const int64_t first = thread.row * a.features;
  const T* x = a.x + first;
  T* const y = a.y + first;
  const float n = static_cast<float>(a.features);
  float values[kN], scale[kN], bias[kN] = {};
  float mean = 0;
  if (a.centred || adds) {
    float sum = 0;
    for (int64_t j = thread.index * kN; j < a.features; j += thread.kCount * kN) {
      LoadAligned(x + j, values);
      if (adds) {
        float addend[kN];
        LoadAligned(a.addend + first + j, addend);
        for (int i = 0; i < kN; ++i) values[i] = Rounded<T>(values[i] + addend[i]);
        StoreAligned(values, a.sum + first + j);
      }
      for (int i = 0; i < kN; ++i) sum += values[i];
    }
    if (a.centred) mean = thread.template Reduce<Sum>(sum) / n;
  }
  if (adds) x = a.sum + first;  // of which a thread reads what it has written itself
  float squares = 0;
  for (int64_t j = thread.index * kN; j < a.features; j += thread.kCount * kN) {
    LoadAligned(x + j, values);
    for (int i = 0; i < kN; ++i) squares += (values[i] - mean) * (values[i] - mean);
  }
  const float variance = thread.template Reduce<Sum>(squares) / n;
  const float rstd = 1.0f / sqrtf(variance + a.epsilon);
  for (int64_t j = thread.index * kN; j < a.features; j += thread.kCount * kN) {
    LoadAligned(x + j, values);
    LoadAligned(a.scale + j, scale);
    if (a.bias != nullptr) LoadAligned(a.bias + j, bias);
    for (int i = 0; i < kN; ++i) values[i] = (values[i] - mean) * rstd * scale[i] + bias[i];
    StoreAligned(values, y + j);
  }
  if (thread.index == 0) {
    if (a.centred) a.mean[thread.row] = mean;
    a.rstd[thread.row] = rstd;
  }
}

}  // namespace

Error NormalizeRows(CudaDevice* device, const LayerNormForward& a) {
  const int64_t features = a.x.dims[a.x.rank - 1];
  const int64_t rows = features == 0 ? 0 : a.x.elements() / features;
  const bool wide = IsWide(a.x, a.addend.data, a.sum.data, a.y.data, a.scale, a.bias);
  return WithElements(a.x.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    const ForwardArguments<T> arguments{static_cast<const T*>(a.x.data),
                                        static_cast<const T*>(a.addend.data),
                                        static_cast<T*>(a.sum.data),
                                        static_cast<T*>(a.y.data),
                                        a.scale,
                                        a.bias,
                                        a.mean,
                                        a.rstd,
                                        a.epsilon,
                                        a.centred,
                                        rows,
                                        features};
    return IsLongRow(features) ? Launch(device, BlocksWith(1, rows), dim3(kThreads),
                                        NormalizeRow<T, kN, kWarps>, arguments)
                               : Launch(device, BlocksWith(kWarps, rows), dim3(kThreads),
                                        NormalizeRow<T, kN, 1>, arguments);
  });
}

}  // namespace thinwire::cuda
