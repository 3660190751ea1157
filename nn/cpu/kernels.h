// The kernels of the CPU: contracts in nn/ops.h, a source for each group.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/cpu/onednn.h"
#include "nn/ops.h"

namespace thinwire::cpu {

// Elementwise kernels; contracts in nn/ops.h.
void Relu(int threads, const TensorView& x, const TensorView& y);
void ReluBackward(int threads, const TensorView& y, const TensorView& dy, const TensorView& dx);
void Add(int threads, const TensorView& a, const TensorView& b, const TensorView& sum);
void Convert(int threads, const TensorView& from, const TensorView& to);
void Sgd(int threads, const SgdUpdate& arguments);
void Combine(int threads, const Combination& arguments);
// Adds source to target, in fp32.
void Accumulate(int threads, const float* source, int64_t n, float* target);

// Functions of single elements and SwiGLU; contracts in nn/ops.h. They compute in fp32, whatever
// the type of x, and an element's result does not depend on its place. Before a rounding to bf16,
// errors are at most 4e-7 of max(|y|, 1) in y and of |dy| max(1, |x|) in a gradient (checked by
// activations_test.cc).
void Apply(int threads, Pointwise function, const TensorView& x, const TensorView& y);
void ApplyBackward(int threads, Pointwise function, const TensorView& x, const TensorView& dy,
                   const TensorView& dx);
void Swiglu(int threads, const TensorView& x, const TensorView& y);
void SwigluBackward(int threads, const TensorView& x, const TensorView& dy, const TensorView& dx);

// AdamW; contract in nn/ops.h. Each operation is rounded by itself, so all instruction sets agree.
void AdamW(int threads, const AdamWUpdate& arguments);

// Self-attention; contract in nn/ops.h. Each group of heads of a sample is computed by one
// thread. So results depend neither on the thread count nor on the batch around a sample.

// Makes an attention for a valid `spec` (nn/attention_checks.h). It computes in fp32, whatever the
// compute type.
std::unique_ptr<Attention> NewAttention(int threads, const AttentionSpec& spec);

// Batch norm with residual and ReLU fused in; contracts in nn/ops.h.
//
// Training reads x twice: for the statistics and to normalise. Backward reads (dy, x) twice. It
// recomputes the ReLU's mask from x, or with a residual reads it once from y. Sums go over fixed
// spans of rows (channel_spans.h), in fp32 within tiles of 64 rows and in fp64 over tiles. So they
// do not depend on the thread count.
Error NormalizeBatch(int threads, const BatchNormForward& arguments);
Error NormalizeBatchBackward(int threads, const BatchNormBackward& arguments);

// Softmax cross-entropy; contract in nn/ops.h. Exponentials and sums are fp64. A row is read from
// memory once and stays in the cache. Results do not depend on the thread count.
LossSums SoftmaxCrossEntropy(int threads, const CrossEntropy& arguments);

// Dropout; contract in nn/ops.h.
Error Drop(int threads, const Dropout& arguments);

// Looks up rows of a table by token; contracts in nn/ops.h. Results do not depend on the thread
// count.
Error Embed(int threads, const Embedding& arguments);
Error EmbedBackward(int threads, const EmbeddingBackward& arguments);

// Find out about sequences of token ids; contracts in nn/ops.h.
void CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths);
void TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types);

// Layer norm; contracts in nn/ops.h.
//
// A row is read three times: for its mean, for its variance, and to normalise. Sums along a row are
// fp32, one per lane of a vector. Sums over rows (dscale, dbias) are fp32 within tiles of a fixed
// number of rows and fp64 over tiles. So they do not depend on the thread count.
// An addend is added before or afterwards, by Add.
void NormalizeRows(int threads, const LayerNormForward& arguments);
void NormalizeRowsBackward(int threads, const LayerNormBackward& arguments);

// Pooling, maxout and changes of width and layout; contracts in nn/ops.h.
void MaxPool(int threads, const PoolSpec& spec, const TensorView& x, const TensorView& y);
void MaxPoolBackward(int threads, const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                     const TensorView& dx);
void Maxout(int threads, int64_t group, const TensorView& x, const TensorView& y);
void MaxoutBackward(int threads, int64_t group, const TensorView& x, const TensorView& dy,
                    const TensorView& dx);
void Resize(int threads, const TensorView& x, const TensorView& y);
void Prepend(int threads, const float* row, const TensorView& x, const TensorView& y);
void PrependBackward(int threads, const TensorView& dy, const TensorView& dx, float* drow);
void GlobalAvgPool(int threads, const TensorView& x, const TensorView& y);
void GlobalAvgPoolBackward(int threads, const TensorView& dy, const TensorView& dx);
void ToChannelsFirst(int threads, const TensorView& x, const TensorView& y);
void ToChannelsLast(int threads, const TensorView& y, const TensorView& x);

// Computes the sum of squares of a gradient, for its norm.

// Returns the sum in fp64, in the same order for every thread count and instruction set. Element i
// is added to sum i mod 32 of its block of 8192. These sums are added in ascending order, then the
// blocks.
double SumOfSquares(int threads, const float* values, int64_t n);

// Convolutions with 3 x 3 kernels and stride 1 with a quarter of the multiplications: F(4 x 4, 3 x
// 3) of Lavin & Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.

// Returns whether a convolution can be computed so, with at most half of the multiplications.
bool WinogradPays(const Conv2dSpec& spec);

// Makes a convolution; requires WinogradPays(spec). Only weight gradients depend on the number of
// threads. Rounding errors are up to six times those of a direct convolution in fp32.
std::unique_ptr<Conv2d> NewWinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec);

}  // namespace thinwire::cpu
