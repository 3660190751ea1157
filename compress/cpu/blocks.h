// Tensors of fp32 or bf16 as blocks of floats, so that each kernel is written once, for fp32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"

namespace thinwire {

// Elements of a block: these fit the first-level cache together with their codes. A multiple of 64,
// so that blocks of b-bit codes start at whole bytes.
constexpr size_t kBlock = 4096;

// Returns elements [begin, begin + n) of x: in x's own memory, or widened into `scratch`.
const float* ReadFloats(const TensorView& x, int64_t begin, size_t n, float* scratch);

// Returns where to write elements [begin, begin + n) of x: x's own memory or `scratch`.
// FinishFloats then narrows `scratch` to nearest even; it does nothing for fp32.
float* FloatsToWrite(const TensorView& x, int64_t begin, float* scratch);
void FinishFloats(const TensorView& x, int64_t begin, size_t n, const float* scratch);

}  // namespace thinwire
