// Bitmap of a tensor's non-zeros, as a SupportView has it.
#pragma once

#include <cstdint>

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::FindNonzeros.
Error CpuFindNonzeros(const TensorView& x, uint64_t* words, int64_t* count, int threads);

}  // namespace thinwire
