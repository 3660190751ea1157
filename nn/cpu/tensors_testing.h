// Shared by the tests of kernels: tensors of either compute type on plain vectors.
#pragma once

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "nn/cpu/bf16.h"
#include "tensor/tensor.h"

namespace thinwire::cpu {

using Floats = std::vector<float>;

inline TensorView View(DType type, const Shape& shape, const void* data) {
  TensorView view;
  view.data = const_cast<void*>(data);
  view.dtype = type;
  view.rank = shape.rank();
  std::copy(shape.begin(), shape.end(), view.dims);
  return view;
}

// Returns values uniform in [-limit, limit), equal for equal arguments.
inline Floats RandomFloats(int64_t n, uint64_t seed, float limit = 1) {
  RandomStream random(RandomKey(seed, "test"));
  Floats values(n);
  for (float& value : values) value = limit * (2 * random.NextFloat() - 1);
  return values;
}

// A tensor of values rounded to a compute type.
class TestTensor {
 public:
  TestTensor(DType type, const Shape& shape, const Floats& values)
      : type_(type), shape_(shape), wide_(values), narrow_(values.size()) {
    for (size_t i = 0; i < values.size(); ++i) StoreOne(values[i], &narrow_[i]);
  }
  TestTensor(DType type, const Shape& shape)
      : TestTensor(type, shape, Floats(shape.elements(), 99.0f)) {}

  TensorView view() {
    return type_ == DType::kF32 ? View(type_, shape_, wide_.data())
                                : View(type_, shape_, narrow_.data());
  }
  Floats Read() const {
    if (type_ == DType::kF32) return wide_;
    Floats values(narrow_.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = LoadOne(&narrow_[i]);
    return values;
  }

 private:
  const DType type_;
  const Shape shape_;
  Floats wide_;
  std::vector<uint16_t> narrow_;
};

}  // namespace thinwire::cpu
