// The kernels of the CPU: contracts in nn/ops.h, a source for each group.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/adamw_factors.h"
#include "nn/cpu/onednn.h"
#include "nn/ops.h"

namespace thinwire::cpu {

// The operations that need no layer; results do not depend on the thread count.
class Kernels : public Ops {
 public:
  explicit Kernels(int threads) : threads_(threads) {}

  // Batch norm with residual and ReLU fused in.
  //
  // Training reads x twice: for the statistics and to normalise. Backward reads (dy, x) twice. It
  // recomputes the ReLU's mask from x, or with a residual reads it once from y. Sums go over fixed
  // spans of rows (channel_spans.h), in fp32 within tiles of 64 rows and in fp64 over tiles.
  Error NormalizeBatch(const BatchNormForward& arguments) override;
  Error NormalizeBatchBackward(const BatchNormBackward& arguments) override;

  // Layer norm.
  //
  // A row is read three times: for its mean, for its variance, and to normalise. Sums along a row
  // are fp32, one per lane of a vector. Sums over rows (dscale, dbias) are fp32 within tiles of a
  // fixed number of rows and fp64 over tiles. An addend is added before or afterwards, by Add.
  Error NormalizeRows(const LayerNormForward& arguments) override;
  Error NormalizeRowsBackward(const LayerNormBackward& arguments) override;
  Error NormalizeHeads(const HeadNormForward& arguments) override;
  Error NormalizeHeadsBackward(const HeadNormBackward& arguments) override;

  Error Embed(const Embedding& arguments) override;
  Error EmbedBackward(const EmbeddingBackward& arguments) override;
  Error CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths) override;
  Error TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types) override;

  Error Relu(const TensorView& x, const TensorView& y) override;
  Error ReluBackward(const TensorView& y, const TensorView& dy, const TensorView& dx) override;
  Error Drop(const Dropout& arguments) override;
  Error Add(const TensorView& a, const TensorView& b, const TensorView& sum) override;
  Error Convert(const TensorView& from, const TensorView& to) override;

  // Functions of single elements and SwiGLU. They compute in fp32, whatever the type of x, and an
  // element's result does not depend on its place. Before a rounding to bf16, errors are at most
  // 4e-7 of max(|y|, 1) in y and of |dy| max(1, |x|) in a gradient (checked by
  // activations_test.cc).
  Error Apply(Pointwise function, const TensorView& x, const TensorView& y) override;
  Error ApplyBackward(Pointwise function, const TensorView& x, const TensorView& dy,
                      const TensorView& dx) override;
  Error Swiglu(const TensorView& x, const TensorView& y) override;
  Error SwigluBackward(const TensorView& x, const TensorView& dy, const TensorView& dx) override;

  Error MaxPool(const PoolSpec& spec, const TensorView& x, const TensorView& y) override;
  Error MaxPoolBackward(const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                        const TensorView& dx) override;
  Error Maxout(int64_t group, const TensorView& x, const TensorView& y) override;
  Error MaxoutBackward(int64_t group, const TensorView& x, const TensorView& dy,
                       const TensorView& dx) override;
  Error Resize(const TensorView& x, const TensorView& y) override;
  Error CopyColumns(const ColumnCopy& a) override;
  Error ExpandWeights(const WeightExpansion& arguments) override;
  Error Prepend(const float* row, const TensorView& x, const TensorView& y) override;
  Error PrependBackward(const TensorView& dy, const TensorView& dx, float* drow) override;
  Error GlobalAvgPool(const TensorView& x, const TensorView& y) override;
  Error GlobalAvgPoolBackward(const TensorView& dy, const TensorView& dx) override;
  Error ToChannelsFirst(const TensorView& x, const TensorView& y) override;
  Error ToChannelsLast(const TensorView& y, const TensorView& x) override;

  // Softmax cross-entropy. Exponentials and sums are fp64. A row is read from memory once and stays
  // in the cache.
  Error SoftmaxCrossEntropy(const CrossEntropy& arguments, LossSums* sums) override;
  Error MeanSquaredError(const SquaredErrors& arguments, LossSums* sums) override;

  // In these, each operation is rounded by itself, so all instruction sets agree.
  Error Sgd(const SgdUpdate& arguments) override;
  Error AdamW(const AdamWUpdate& arguments) override;
  Error Combine(const Combination& arguments) override;
  // Adds in the same order for every instruction set, too. Element i of a range is added to sum i
  // mod 32 of its block of 8192. These sums are added in ascending order, then the blocks.
  Error SumsOfSquares(const FloatRange* ranges, int64_t count, double* sums) override;
  Error ClipByNorm(const NormClip& arguments) override;

 private:
  const int threads_;
};

// Updates a parameter with coded means, in blocks of codes.
void CodedAdamW(int threads, const AdamWUpdate& update, const AdamWFactors& factors,
                const AdamWParameter& parameter);

// Adds source to target, in fp32.
void Accumulate(int threads, const float* source, int64_t n, float* target);

// Self-attention; contract in nn/ops.h. Each group of heads of a sample is computed by one
// thread. So results depend neither on the thread count nor on the batch around a sample.

// Makes an attention for a valid `spec` (nn/attention_checks.h). It computes in fp32, whatever the
// compute type.
std::unique_ptr<Attention> NewAttention(int threads, const AttentionSpec& spec);

// Convolutions with 3 x 3 kernels and stride 1 with a quarter of the multiplications: F(4 x 4, 3 x
// 3) of Lavin & Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.

// Returns whether a convolution can be computed so, with at most half of the multiplications.
bool WinogradPays(const Conv2dSpec& spec);

// Makes a convolution; requires WinogradPays(spec). Only weight gradients depend on the number of
// threads. Rounding errors are up to six times those of a direct convolution in fp32.
std::unique_ptr<Conv2d> NewWinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec);

}  // namespace thinwire::cpu
