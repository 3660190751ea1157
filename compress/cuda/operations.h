// Operations on tensors that a GPU has beside codecs.
#pragma once

#include <cstdint>

#include "compress/kernels.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Weighted sums of a message's rows.

// See CodecKernels::CombineRows. Equal to compress/cpu/operations.h to the last bit.
Error CudaCombineRows(CudaDevice* device, const RowSums& sums);

// Gathering of the entries of a tensor that have support, and the way back.

// See CodecKernels::Compact and Expand. These only launch kernels.
Error CudaCompact(CudaDevice* device, const TensorView& x, const SupportView& support,
                  const TensorView& compact);
Error CudaExpand(CudaDevice* device, const TensorView& compact, const SupportView& support,
                 const TensorView& x);

// Comparison of two tensors by sums over them.

// See CodecKernels::Compare. Counts equal those of compress/cpu/operations.h. Sums are of the same
// fp64 products in another order, which data and shape alone fix. Each level of adding moves a sum
// of squares from the CPU's by at most a few units in the last place: in all far below 1e-12 of
// itself. The sum of x y differs by as large a share of the sum of |x y|.
Error CudaCompare(CudaDevice* device, const TensorView& x, const TensorView& y,
                  CodecKernels::Sums* sums);

// Product of a tensor's rows with a matrix.

// See CodecKernels::Multiply. Equal to compress/cpu/operations.h to the last bit. Only launches
// kernels.
Error CudaMultiply(CudaDevice* device, const TensorView& x, const TensorView& factor,
                   const TensorView& out);

// Bitmap of a tensor's non-zeros, as a SupportView has it.

// See CodecKernels::FindNonzeros.
Error CudaFindNonzeros(CudaDevice* device, const TensorView& x, uint64_t* words, int64_t* count);

}  // namespace thinwire
