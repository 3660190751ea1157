// A tensor of fp32 or bf16 as blocks of floats, so that each kernel is written once, for fp32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"

namespace thinwire {

// What fits the first-level cache together with its codes. A multiple of 64, so that blocks of
// b-bit codes start at whole bytes.
constexpr size_t kBlock = 4096;

// Elements [begin, begin + n) of x: its own memory, or widened into `scratch`.
const float* ReadFloats(const TensorView& x, int64_t begin, size_t n, float* scratch);

// Where to write elements [begin, begin + n) of x: its own memory or `scratch`; FinishFloats
// narrows from `scratch`, to nearest even, and does nothing for fp32.
float* FloatsToWrite(const TensorView& x, int64_t begin, float* scratch);
void FinishFloats(const TensorView& x, int64_t begin, size_t n, const float* scratch);

}  // namespace thinwire
