// Elementwise kernels; contracts in nn/ops.h.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void Relu(int threads, const TensorView& x, const TensorView& y);
void ReluBackward(int threads, const TensorView& y, const TensorView& dy, const TensorView& dx);
void Add(int threads, const TensorView& a, const TensorView& b, const TensorView& sum);
void Convert(int threads, const TensorView& from, const TensorView& to);
void Sgd(int threads, const SgdUpdate& arguments);
void Combine(int threads, const Combination& arguments);
// Adds source to target, in fp32.
void Accumulate(int threads, const float* source, int64_t n, float* target);

}  // namespace thinwire::cpu
