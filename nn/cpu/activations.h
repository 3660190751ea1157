// GELU and SwiGLU; contracts in nn/ops.h. In fp32, whatever the type of x; what an element becomes
// does not depend on its place. Errors (activations_test.cc holds them): 4e-7 of max(|y|, 1) in y
// and of |dy| max(1, |x|) in a gradient, before a rounding to bf16.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void Gelu(int threads, GeluKind kind, const TensorView& x, const TensorView& y);
void GeluBackward(int threads, GeluKind kind, const TensorView& x, const TensorView& dy,
                  const TensorView& dx);
void Swiglu(int threads, const TensorView& x, const TensorView& y);
void SwigluBackward(int threads, const TensorView& x, const TensorView& dy, const TensorView& dx);

}  // namespace thinwire::cpu
