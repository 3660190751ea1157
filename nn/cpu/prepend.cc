#include <algorithm>
#include <cstdint>

#include "nn/cpu/bf16.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

namespace thinwire::cpu {
namespace {

template <typename T>
void PrependTyped(int threads, const float* row, const TensorView& x, const TensorView& y) {
  const int64_t features = x.dims[2], of_sample = x.dims[1] * features;
  ParallelFor(threads, x.dims[0], [&](int64_t sample) {
    T* const to = static_cast<T*>(y.data) + sample * (of_sample + features);
    for (int64_t j = 0; j < features; ++j) StoreOne(row[j], to + j);
    std::copy_n(static_cast<const T*>(x.data) + sample * of_sample, of_sample, to + features);
  });
}

template <typename T>
void PrependBackwardTyped(int threads, const TensorView& dy, const TensorView& dx, float* drow) {
  const int64_t batch = dx.dims[0], features = dx.dims[2], of_sample = dx.dims[1] * features;
  const auto from = [&](int64_t sample) {
    return static_cast<const T*>(dy.data) + sample * (of_sample + features);
  };
  ParallelFor(threads, batch, [&](int64_t sample) {
    std::copy_n(from(sample) + features, of_sample, static_cast<T*>(dx.data) + sample * of_sample);
  });
  for (int64_t sample = 0; drow != nullptr && sample < batch; ++sample) {
    for (int64_t j = 0; j < features; ++j) drow[j] += LoadOne(from(sample) + j);
  }
}

}  // namespace

Error Kernels::Prepend(const float* row, const TensorView& x, const TensorView& y) {
  x.dtype == DType::kF32 ? PrependTyped<float>(threads_, row, x, y)
                         : PrependTyped<uint16_t>(threads_, row, x, y);
  return Error{};
}

Error Kernels::PrependBackward(const TensorView& dy, const TensorView& dx, float* drow) {
  dy.dtype == DType::kF32 ? PrependBackwardTyped<float>(threads_, dy, dx, drow)
                          : PrependBackwardTyped<uint16_t>(threads_, dy, dx, drow);
  return Error{};
}

}  // namespace thinwire::cpu
