// Kernels of a GPU, a source for each group; contracts in nn/ops.h.
#pragma once

#include <cstdint>

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

class ColumnSums;  // column_sums.h

// The operations that need no library.
class Kernels : public Ops {
 public:
  explicit Kernels(CudaDevice* device) : device_(device) {}

  // Batch norm with residual and ReLU fused in.
  //
  // Training reads x twice: for the statistics and to normalise. Backward reads (dy, x) twice. It
  // recomputes the ReLU's mask from x, or with a residual reads it once from y. Sums of squares do
  // not cancel, as they are of x - x[first pixel], which is near the mean. They are fp32 over at
  // most 64 pixels of a thread and over its warp, and fp64 beyond (columns.cuh).
  Error NormalizeBatch(const BatchNormForward& arguments) override;
  Error NormalizeBatchBackward(const BatchNormBackward& arguments) override;

  // Layer norm and RMS norm.
  //
  // A warp computes a row, or a block if the row has more than 1024 features. It reads the row
  // three times, twice from the cache: for its mean (not for RMS norm), for its variance, and to
  // normalise.
  Error NormalizeRows(const LayerNormForward& arguments) override;
  // A warp computes a head.
  Error NormalizeHeads(const HeadNormForward& arguments) override;

  // Token and position embedding with the same bits as the CPU's.
  Error Embed(const Embedding& arguments) override;
  Error EmbedBackward(const EmbeddingBackward& arguments) override;

  // Find out about sequences of token ids. A warp reads a sample's ids.
  Error CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths) override;
  Error TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types) override;

  // Elementwise kernels with the same bits as the CPU's.
  Error Relu(const TensorView& x, const TensorView& y) override;
  Error ReluBackward(const TensorView& y, const TensorView& dy, const TensorView& dx) override;
  Error Drop(const Dropout& arguments) override;
  Error Add(const TensorView& a, const TensorView& b, const TensorView& sum) override;
  Error Combine(const Combination& arguments) override;
  Error Zero(float* values, int64_t n) override;

  // SwiGLU. Results are within a few units in the last place of the CPU's, which uses another
  // exponential.
  Error Swiglu(const TensorView& x, const TensorView& y) override;
  Error SwigluBackward(const TensorView& x, const TensorView& dy, const TensorView& dx) override;

  // Pooling. Backward gathers: each element of dx finds the windows that it has won, in row order.
  // So the order of sums is fixed, and nothing is stored between the passes.
  Error MaxPool(const PoolSpec& spec, const TensorView& x, const TensorView& y) override;
  Error MaxPoolBackward(const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                        const TensorView& dx) override;
  Error GlobalAvgPool(const TensorView& x, const TensorView& y) override;
  Error GlobalAvgPoolBackward(const TensorView& dy, const TensorView& dx) override;

  Error Maxout(int64_t group, const TensorView& x, const TensorView& y) override;
  Error MaxoutBackward(int64_t group, const TensorView& x, const TensorView& dy,
                       const TensorView& dx) override;
  Error Resize(const TensorView& x, const TensorView& y) override;
  Error CopyColumns(const ColumnCopy& a) override;
  Error ExpandWeights(const WeightExpansion& arguments) override;
  // Puts a row before those of each sample, with the same bits as the CPU's.
  Error Prepend(const float* row, const TensorView& x, const TensorView& y) override;
  Error PrependBackward(const TensorView& dy, const TensorView& dx, float* drow) override;
  Error ToChannelsFirst(const TensorView& x, const TensorView& y) override;
  Error ToChannelsLast(const TensorView& y, const TensorView& x) override;

  // Softmax cross-entropy. A thread's exponentials and their sum are fp32. The sum over threads and
  // the loss are fp64, for which many GPUs have few units.
  Error SoftmaxCrossEntropy(const CrossEntropy& arguments, LossSums* sums) override;
  // One block computes all rows, which are few.
  Error MeanSquaredError(const SquaredErrors& arguments, LossSums* sums) override;

  // Update parameters, with the same bits as the CPU's and one launch for up to 80 (AdamW: 64) of
  // them, or for each whose means are codes. They are passed to it by value, so there is no table
  // in device memory, nothing to copy, and each step may have a new learning rate.
  Error Sgd(const SgdUpdate& arguments) override;
  Error AdamW(const AdamWUpdate& arguments) override;
  // Both take two launches for up to 128 ranges. SumsOfSquares waits once, ClipByNorm does not.
  Error SumsOfSquares(const FloatRange* ranges, int64_t count, double* sums) override;
  Error ClipByNorm(const NormClip& arguments) override;

 protected:
  CudaDevice* const device_;
};

// These are called by others than Ops, too; contracts in nn/ops.h.

// Apply functions of single elements. Results are within a few units in the last place of the
// CPU's.
Error Apply(CudaDevice* device, Pointwise function, const TensorView& x, const TensorView& y);
Error ApplyBackward(CudaDevice* device, Pointwise function, const TensorView& x,
                    const TensorView& dy, const TensorView& dx);
Error Convert(CudaDevice* device, const TensorView& from, const TensorView& to);

// Updates a parameter of `update` whose means are codes. A block has a block of them, and copies of
// both tables in shared memory.
Error CodedAdamW(CudaDevice* device, const AdamWUpdate& update, const AdamWParameter& parameter);

// Computes the gradients of NormalizeRows. It holds a warp's row in registers and reads (x, dy)
// once, if accesses are wide. Otherwise it reads them for dx and once more for the sums over rows,
// dscale and dbias (columns.cuh), which `sums` adds.
Error NormalizeRowsBackward(CudaDevice* device, const LayerNormBackward& arguments,
                            ColumnSums* sums);
// Computes the gradients of NormalizeHeads. It reads (x, dy) for the sums over heads, which `sums`
// adds, and twice for dx.
Error NormalizeHeadsBackward(CudaDevice* device, const HeadNormBackward& arguments,
                             ColumnSums* sums);

// Adds a bias to a [rows, channels] matrix of the compute type, and computes its gradient. The last
// axis of a view is its channels.

// Computes y += bias, row by row, with one rounding. bias: [channels].
Error AddBias(CudaDevice* device, const float* bias, const TensorView& y);

// Adds the sums of the first `channels` columns of dy to gradient: [channels], by `sums`. The order
// of additions depends only on the shape and element type.
Error AddColumnSums(CudaDevice* device, const TensorView& dy, int64_t channels, ColumnSums* sums,
                    float* gradient);

}  // namespace thinwire::cuda
