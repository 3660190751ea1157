// The entries of a tensor that a support map names, without the others between them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"

namespace thinwire {

Error CpuCompact(const TensorView& x, const SupportView& support, const TensorView& compact,
                 int threads);
Error CpuExpand(const TensorView& compact, const SupportView& support, const TensorView& x,
                int threads);

// All of x as fp32, and zero what is not supported; `support` may be null: all of it is. x's own
// memory, or this thread's until its next call.
const float* SupportedFloats(const TensorView& x, const SupportView* support, int threads);

// Overwrites x[0, support.elements) with zeros where no bit is set.
void KeepSupported(const SupportView& support, int threads, float* x);

}  // namespace thinwire
