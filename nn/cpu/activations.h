// GELU and SwiGLU; contracts in nn/ops.h. They compute in fp32, whatever the type of x, and an
// element's result does not depend on its place. Before a rounding to bf16, errors are at most 4e-7
// of max(|y|, 1) in y and of |dy| max(1, |x|) in a gradient (checked by activations_test.cc).
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void Gelu(int threads, GeluKind kind, const TensorView& x, const TensorView& y);
void GeluBackward(int threads, GeluKind kind, const TensorView& x, const TensorView& dy,
                  const TensorView& dx);
void Swiglu(int threads, const TensorView& x, const TensorView& y);
void SwigluBackward(int threads, const TensorView& x, const TensorView& dy, const TensorView& dx);

}  // namespace thinwire::cpu
