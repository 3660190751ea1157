// Gathering of the entries of a tensor that have support, and the way back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"

namespace thinwire {

// See CodecKernels::Compact and Expand.
Error CpuCompact(const TensorView& x, const SupportView& support, const TensorView& compact,
                 int threads);
Error CpuExpand(const TensorView& compact, const SupportView& support, const TensorView& x,
                int threads);

// Returns all of x as fp32, with zeros where there is no support. A null `support` means that all
// entries have it. The result is x's own memory, or memory of this thread that is valid until its
// next call.
const float* SupportedFloats(const TensorView& x, const SupportView* support, int threads);

// Overwrites x[0, support.elements) with zeros where no bit is set.
void KeepSupported(const SupportView& support, int threads, float* x);

}  // namespace thinwire
