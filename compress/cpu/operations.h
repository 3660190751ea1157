// Operations on tensors that the CPU has beside codecs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Weighted sums of a message's rows.

// See CodecKernels::CombineRows.
Error CpuCombineRows(const RowSums& sums, int threads);

// Gathering of the entries of a tensor that have support, and the way back.

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

// Comparison of two tensors, for distortion.

// See CodecKernels::Compare. Sums are taken in eight interleaved lanes over each stretch of
// kMostOfOneThread elements, one stretch after the other, so they are the same on every machine.
Error CpuCompare(const TensorView& x, const TensorView& y, CodecKernels::Sums* sums, int threads);

// Product of a tensor's rows with a matrix.

// See CodecKernels::Multiply.
Error CpuMultiply(const TensorView& x, const TensorView& factor, const TensorView& out,
                  int threads);

// Bitmap of a tensor's non-zeros, as a SupportView has it.

// See CodecKernels::FindNonzeros.
Error CpuFindNonzeros(const TensorView& x, uint64_t* words, int64_t* count, int threads);

}  // namespace thinwire
