// Kernels of a GPU, a source for each group; contracts in nn/ops.h.
#pragma once

#include <cstdint>

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

class ColumnSums;  // column_sums.h

// Elementwise kernels with the same bits as the CPU's; contracts in nn/ops.h.
Error Relu(CudaDevice* device, const TensorView& x, const TensorView& y);
Error ReluBackward(CudaDevice* device, const TensorView& y, const TensorView& dy,
                   const TensorView& dx);
Error Add(CudaDevice* device, const TensorView& a, const TensorView& b, const TensorView& sum);
Error Convert(CudaDevice* device, const TensorView& from, const TensorView& to);
// Convert n values of `type` to fp32, and fp32 to `type`.
Error Widen(CudaDevice* device, const void* values, DType type, int64_t n, float* wide);
Error Narrow(CudaDevice* device, const float* values, int64_t n, DType type, void* narrow);
Error Combine(CudaDevice* device, const Combination& arguments);
Error Zero(CudaDevice* device, float* values, int64_t n);

// Functions of single elements and SwiGLU; contracts in nn/ops.h. Results are within a few units in
// the last place of the CPU's, which uses another exponential.
Error Apply(CudaDevice* device, Pointwise function, const TensorView& x, const TensorView& y);
Error ApplyBackward(CudaDevice* device, Pointwise function, const TensorView& x,
                    const TensorView& dy, const TensorView& dx);
Error Swiglu(CudaDevice* device, const TensorView& x, const TensorView& y);
Error SwigluBackward(CudaDevice* device, const TensorView& x, const TensorView& dy,
                     const TensorView& dx);

// AdamW, the same bits as the CPU's; contract in nn/ops.h.
Error AdamW(CudaDevice* device, const AdamWUpdate& arguments);

// Batch norm with residual and ReLU fused in; contracts in nn/ops.h.
//
// Training reads x twice: for the statistics and to normalise. Backward reads (dy, x) twice. It
// recomputes the ReLU's mask from x, or with a residual reads it once from y. Sums of squares do
// not cancel, as they are of x - x[first pixel], which is near the mean. They are fp32 over at most
// 64 pixels of a thread and over its warp, and fp64 beyond (columns.cuh).
Error NormalizeBatch(CudaDevice* device, const BatchNormForward& arguments);
Error NormalizeBatchBackward(CudaDevice* device, const BatchNormBackward& arguments);

// Adds a bias to a [rows, channels] matrix of the compute type, and computes its gradient. The last
// axis of a view is its channels.

// Computes y += bias, row by row, with one rounding. bias: [channels].
Error AddBias(CudaDevice* device, const float* bias, const TensorView& y);

// Adds the sums of the first `channels` columns of dy to gradient: [channels], by `sums`. The order
// of additions depends only on the shape and element type.
Error AddColumnSums(CudaDevice* device, const TensorView& dy, int64_t channels, ColumnSums* sums,
                    float* gradient);

// Softmax cross-entropy; contract in nn/ops.h. A thread's exponentials and their sum are fp32. The
// sum over threads and the loss are fp64, for which many GPUs have few units.

// Submits the work and returns. *sums is memory of Device::host() and valid after a Finish.
Error SoftmaxCrossEntropy(CudaDevice* device, const CrossEntropy& arguments, LossSums* sums);

// Inverted dropout with the same bits as the CPU's; contract in nn/ops.h.
Error Drop(CudaDevice* device, const Dropout& arguments);

// Token and position embedding with the same bits as the CPU's; contracts in nn/ops.h.
Error Embed(CudaDevice* device, const Embedding& arguments);
Error EmbedBackward(CudaDevice* device, const EmbeddingBackward& arguments);

// Find out about sequences of token ids; contracts in nn/ops.h. A warp reads a sample's ids.
Error CountPositions(CudaDevice* device, const TensorView& ids, int32_t pad, int32_t* lengths);
Error TokenTypes(CudaDevice* device, const TensorView& ids, int32_t separator,
                 const TensorView& types);

// Layer norm and RMS norm; contracts in nn/ops.h.
//
// A warp computes a row, or a block if the row has more than 1024 features. It reads the row three
// times, twice from the cache: for its mean (not for RMS norm), for its variance, and to normalise.
// Backward holds a warp's row in registers and reads (x, dy) once, if accesses are wide. Otherwise
// it reads them for dx and once more for the sums over rows, dscale and dbias (columns.cuh), which
// `sums` adds.
Error NormalizeRows(CudaDevice* device, const LayerNormForward& arguments);
Error NormalizeRowsBackward(CudaDevice* device, const LayerNormBackward& arguments,
                            ColumnSums* sums);

// Maxout; contracts in nn/ops.h.
Error Maxout(CudaDevice* device, int64_t group, const TensorView& x, const TensorView& y);
Error MaxoutBackward(CudaDevice* device, int64_t group, const TensorView& x, const TensorView& dy,
                     const TensorView& dx);

// Pooling; contracts in nn/ops.h. Backward gathers: each element of dx finds the windows that it
// has won, in row order. So the order of sums is fixed, and nothing is stored between the passes.
Error MaxPool(CudaDevice* device, const PoolSpec& spec, const TensorView& x, const TensorView& y);
Error MaxPoolBackward(CudaDevice* device, const PoolSpec& spec, const TensorView& x,
                      const TensorView& dy, const TensorView& dx);
Error GlobalAvgPool(CudaDevice* device, const TensorView& x, const TensorView& y);
Error GlobalAvgPoolBackward(CudaDevice* device, const TensorView& dy, const TensorView& dx);

// Changes the number of features; contract in nn/ops.h.
Error Resize(CudaDevice* device, const TensorView& x, const TensorView& y);

// Puts a row before those of each sample, with the same bits as the CPU's; contracts in nn/ops.h.
Error Prepend(CudaDevice* device, const float* row, const TensorView& x, const TensorView& y);
Error PrependBackward(CudaDevice* device, const TensorView& dy, const TensorView& dx, float* drow);

// SGD with the same bits as the CPU's; contract in nn/ops.h.

// Updates parameters with one launch for up to 96 of them. They are passed to it by value, so there
// is no table in device memory, nothing to copy, and each step may have a new learning rate.
Error Sgd(CudaDevice* device, const SgdUpdate& arguments);

// Sums of squares in fp64; contract in nn/ops.h.

// Both take two launches for up to 128 ranges. SumsOfSquares waits once, ClipByNorm does not.
Error SumsOfSquares(CudaDevice* device, const FloatRange* ranges, int64_t count, double* sums);
Error ClipByNorm(CudaDevice* device, const NormClip& arguments);

// Changes layouts; contracts in nn/ops.h.
Error ToChannelsFirst(CudaDevice* device, const TensorView& x, const TensorView& y);
Error ToChannelsLast(CudaDevice* device, const TensorView& y, const TensorView& x);

}  // namespace thinwire::cuda
