#include "nn/cuda/kernels.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Computes all rows in one block. `sums` is host memory.
template <typename T>
__global__ void ErrorsOfRows(SquaredErrors a, LossSums* sums) {
  const int64_t rows = a.outputs.dims[0], elements = a.outputs.dims[1];
  double loss = 0;
  int64_t counted = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) {
    const bool counts = a.scores[row] >= 0;
    const auto output = static_cast<double>(Load(a.outputs.as<const T>() + row * elements));
    const double error = counts ? output - a.scores[row] * a.unit : 0;
    loss += error * error;
    counted += counts;
    if (a.doutputs.data == nullptr) continue;
    T* const doutputs = a.doutputs.as<T>() + row * elements;
    Store(static_cast<float>(2 * error / static_cast<double>(a.batch_size)), doutputs);
    for (int64_t i = 1; i < elements; ++i) Store(0, doutputs + i);
  }
  loss = BlockReduce<Sum>(loss);
  counted = BlockReduce<Sum>(counted);
  if (threadIdx.x != 0) return;
  sums->loss = loss;
  sums->correct = 0;
  sums->counted = counted;
}

}  // namespace

Error Kernels::MeanSquaredError(const SquaredErrors& a, LossSums* sums) {
  const auto bytes = static_cast<size_t>(a.outputs.dims[0]) * sizeof(int32_t);
  CudaScratch scores(device_);
  RETURN_ERROR(scores.Reserve(bytes));
  RETURN_ERROR(device_->SubmitCopyFromHost(scores.as<int32_t>(), a.scores, bytes));
  SquaredErrors there = a;
  there.scores = scores.as<int32_t>();
  return WithElements(a.outputs.dtype, /*wide=*/false, [&](auto type) {
    using T = typename decltype(type)::Type;
    return Launch(device_, dim3(1), dim3(kThreads), ErrorsOfRows<T>, there, sums);
  });
}

}  // namespace thinwire::cuda
