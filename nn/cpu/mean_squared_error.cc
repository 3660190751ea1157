#include <algorithm>
#include <cstdint>

#include "nn/cpu/bf16.h"
#include "nn/cpu/kernels.h"

namespace thinwire::cpu {
namespace {

template <typename T>
LossSums ErrorsOfRows(const SquaredErrors& a) {
  const int64_t rows = a.outputs.dims[0], elements = a.outputs.dims[1];
  const T* const outputs = static_cast<const T*>(a.outputs.data);
  T* const doutputs = static_cast<T*>(a.doutputs.data);
  LossSums sums;
  for (int64_t row = 0; row < rows; ++row) {
    const bool counts = a.scores[row] >= 0;
    const double output = static_cast<double>(LoadOne(outputs + row * elements));
    const double error = counts ? output - a.scores[row] * a.unit : 0;
    sums.loss += error * error;
    sums.counted += counts;
    if (doutputs == nullptr) continue;
    std::fill_n(doutputs + row * elements, elements, T{});
    const double gradient = 2 * error / static_cast<double>(a.batch_size);
    StoreOne(static_cast<float>(gradient), doutputs + row * elements);
  }
  return sums;
}

}  // namespace

Error Kernels::MeanSquaredError(const SquaredErrors& a, LossSums* sums) {
  *sums = a.outputs.dtype == DType::kF32 ? ErrorsOfRows<float>(a) : ErrorsOfRows<uint16_t>(a);
  return Error{};
}

}  // namespace thinwire::cpu
