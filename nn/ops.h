// The arithmetic of layers: one of a backend's three interfaces (the others are tensor/device.h and
// compress/kernels.h). It has pure-virtual functions and plain data only, because backends may be
// plugins.
//
// Images are channels-last, [batch, height, width, channels]. The "compute type" is fp32 or bf16,
// the type of activations and their gradients; every float* is fp32. All memory is the backend's
// own device memory unless a comment says host. bf16 results round to nearest, ties to even. Sums,
// statistics and parameter gradients are fp32 or better.
//
// Results depend only on inputs, thread count and instruction set. One thread at a time uses an Ops
// and what it made; what it made must be destroyed first. Memory passed in may be freed or
// overwritten once a call has returned (a device orders its own frees after the work).
#pragma once

#include <cstdint>

#include "nn/moment_codes.h"
#include "tensor/error.h"
#include "tensor/tensor.h"
#include "tensor/weight_format.h"

namespace thinwire {

struct Conv2dSpec {
  int64_t in_channels = 0, out_channels = 0;
  int64_t height = 0, width = 0;                // of x, pixels
  int64_t kernel = 0, stride = 1, padding = 0;  // pixels, both directions alike
  bool bias = false;
  DType compute = DType::kF32;
};

// Copies of weights and a bias that are the same values in the same order, rounded to bf16; null: a
// backend keeps none of this kind.
struct NarrowCopies {
  uint16_t* weights = nullptr;
  uint16_t* bias = nullptr;
};

// A convolution y = x * W + b.
//   x: [n, height, width, in]   W: [out, in, kernel, kernel]   y: [n, h', w', out]
// with h' = (height + 2 padding - kernel) / stride + 1. Any n is allowed, and each new n is
// prepared once.
class Conv2d {
 public:
  virtual ~Conv2d() = default;
  // Sets the weights. Called before the first Forward and whenever the values have changed. `bias`
  // is null without one. The caller must keep both in place, unchanged, until the next call.
  virtual Error LoadWeights(const float* weights, const float* bias) = 0;
  // Returns the copies that LoadWeights writes. Whoever changes a value may write it there, too,
  // instead of another LoadWeights.
  virtual NarrowCopies narrow_copies() const = 0;
  // Computes y from x.
  virtual Error Forward(const TensorView& x, const TensorView& y) = 0;
  // Computes dx from dy.
  virtual Error BackwardData(const TensorView& dy, const TensorView& dx) = 0;
  // Adds to dW and, with a bias, to db (else null).
  virtual Error BackwardWeights(const TensorView& x, const TensorView& dy, float* weights_gradient,
                                float* bias_gradient) = 0;
};

struct LinearSpec {
  int64_t in_features = 0, out_features = 0;
  bool bias = false;
  DType compute = DType::kF32;
  // Number of elements of a row of y. Those behind out_features are written as zeros, and are zeros
  // in dy. 0 means out_features; the CPU takes only that.
  int64_t row = 0;
  // True: weights come by UseWeights, and LoadWeights gets null for them; there is no
  // BackwardWeights.
  bool borrows_weights = false;

  int64_t row_of_y() const { return row > 0 ? row : out_features; }
};

// A product y = x W^T + b, row by row.
//   x: [n, in]   W: [out, in]   b: [out]   y: [n, out] or longer rows
// Layers pass tensors of more axes as rows.
class Linear {
 public:
  virtual ~Linear() = default;
  // These do what the functions of Conv2d do.
  virtual Error LoadWeights(const float* weights, const float* bias) = 0;
  // Sets the weights of the next products, [out, in] in the compute type, aligned to 64 bytes. No
  // copy is made: they must stay until those products are submitted. Only with borrows_weights.
  virtual Error UseWeights(const void* weights) = 0;
  virtual NarrowCopies narrow_copies() const = 0;
  virtual Error Forward(const TensorView& x, const TensorView& y) = 0;
  virtual Error BackwardData(const TensorView& dy, const TensorView& dx) = 0;
  virtual Error BackwardWeights(const TensorView& x, const TensorView& dy, float* weights_gradient,
                                float* bias_gradient) = 0;
  // Computes u = x W^T + b and y = gelu(u), in tanh form. A backend may apply GELU to u before or
  // after that is rounded to the compute type. u may be absent. Not for longer rows.
  virtual Error ForwardGelu(const TensorView& x, const TensorView& u, const TensorView& y) = 0;
  // Computes du = (dy W) gelu'(u) for a layer whose x is gelu(u), likewise.
  virtual Error BackwardGelu(const TensorView& dy, const TensorView& u, const TensorView& du) = 0;
};

// Batch norm over all axes but the last (Ioffe & Szegedy, ICML 2015), fused with what usually
// follows:
//   z = scale (x - mean) rstd + bias [+ residual],   y = relu ? max(z, 0) : z.
// x, y, residual: [..., channels] in the compute type. A view without data means that it is absent.
struct BatchNormForward {
  TensorView x, residual, y;
  const float* scale = nullptr;  // [channels], as all below
  const float* bias = nullptr;
  float* running_mean = nullptr;  // r = (1 - momentum) r + momentum (batch statistic);
  float* running_var = nullptr;   // the variance in it divides by count - 1, as PyTorch's
  // Out: mean of this batch. Null: the running statistics are used instead, and only y is written.
  float* mean = nullptr;
  float* rstd = nullptr;  // out, with mean: 1 / sqrt(biased variance + epsilon)
  float momentum = 0.1f;
  float epsilon = 1e-5f;
  bool relu = false;
};

// Gradients of BatchNormForward.
struct BatchNormBackward {
  TensorView x;          // Forward's
  TensorView y;          // Forward's; read only with relu
  TensorView dy, dx;     // distinct memory
  TensorView dresidual;  // out: dz, the gradient before the ReLU; absent without a residual
  // Absent, or added to dy, and the sum rounded to the compute type. Only with relu and dresidual.
  TensorView addend;
  const float* scale = nullptr;
  const float* bias = nullptr;  // Forward's, unchanged
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* dscale = nullptr;  // added to; null, as dbias: nobody wants it
  float* dbias = nullptr;   // added to
  bool relu = false;
};

// Layer norm over the last axis (Ba et al., 2016): y = scale (x - mean) rstd + bias, row by row. x,
// y: [..., features] in the compute type. If `centred` is false it is RMS norm (Zhang & Sennrich,
// NeurIPS 2019): y = scale x rstd, rstd = 1 / sqrt(mean of squares + epsilon). Then bias and mean
// are null.
struct LayerNormForward {
  TensorView x, y;
  // Absent, or x + addend, rounded to the compute type, goes to `sum`, which is then normalised
  // instead of x. It may be x's memory.
  TensorView addend, sum;
  const float* scale = nullptr;  // [features]
  const float* bias = nullptr;   // [features]; null: no bias
  float* mean = nullptr;         // out: [rows], all axes but the last
  float* rstd = nullptr;         // out: [rows], 1 / sqrt(biased variance + epsilon)
  float epsilon = 1e-5f;
  bool centred = true;
};

struct LayerNormBackward {
  TensorView x;       // Forward's, or its sum
  TensorView dy, dx;  // distinct memory
  TensorView addend;  // absent, or added to dx after that has been rounded to the compute type
  const float* scale = nullptr;
  const float* mean = nullptr;  // Forward's, as rstd
  const float* rstd = nullptr;
  float* dscale = nullptr;  // added to; null: nobody wants it
  float* dbias = nullptr;   // added to; null likewise, and where Forward had no bias
  bool centred = true;      // Forward's
};

// RMS norm of each head of queries and keys, in front of attention (Dehghani et al., ICML 2023):
// y = scale x rstd, head by head. Values stay as they are.
//   x, y: [rows, heads + 2 kv_heads, head_size] in the compute type, heads in attention's order
struct HeadNormForward {
  int64_t heads = 0, kv_heads = 0, head_size = 0;
  TensorView x, y;               // any number of axes
  const float* scale = nullptr;  // [2, head_size]: of queries, of keys
  float* rstd = nullptr;         // out: [rows, heads + 2 kv_heads]; nothing for values
  float epsilon = 1e-5f;

  int64_t all_heads() const { return heads + 2 * kv_heads; }
};

struct HeadNormBackward {
  int64_t heads = 0, kv_heads = 0, head_size = 0;
  TensorView x;                  // Forward's
  TensorView dy, dx;             // distinct memory
  const float* scale = nullptr;  // Forward's, as rstd
  const float* rstd = nullptr;
  float* dscale = nullptr;  // [2, head_size], added to; null: nobody wants it

  int64_t all_heads() const { return heads + 2 * kv_heads; }
};

// A look-up y[i] = rows[i] + positions[first_position + i mod T]. Here rows[i] is table[ids[i]], or
// x[i] without a table.   y: [batch, T, features] in the compute type.
struct Embedding {
  TensorView ids;                // int32 [batch, T]; read with a table only
  const float* table = nullptr;  // [vocabulary, features]
  int64_t vocabulary = 0, features = 0;
  const float* positions = nullptr;  // [first_position + T or more, features]; null: not added
  int64_t first_position = 0;
  TensorView y;
  TensorView x;  // [batch, T, features]; read without a table only; may be y itself
};

// Adds dy to the gradients of the rows that Forward read. Rows of equal ids are added in ascending
// order of position.
struct EmbeddingBackward {
  TensorView ids;           // Forward's; read for dtable only
  TensorView dy;            // [batch, T, features] in the compute type
  float* dtable = nullptr;  // null: not wanted
  int64_t vocabulary = 0, features = 0;
  float* dpositions = nullptr;  // null: not wanted
  int64_t first_position = 0;
};

// Functions of single elements. kExactGelu is x Phi(x), where Phi is the normal distribution's
// cumulative distribution (GELU; Hendrycks & Gimpel, 2016). kTanhGelu replaces Phi(x) by 0.5 (1 +
// tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as in GPT-2.
enum class Pointwise : uint8_t { kTanhGelu, kExactGelu, kTanh };

// Inverted dropout (Srivastava et al., JMLR 2014). Element e of sample s is divided by 1 - rate if
// DropoutMask (nn/dropout_mask.h) of (key, first_sample + s) keeps e; otherwise it becomes zero. So
// the same call on (dy, dx) is the backward pass, and how a batch is divided does not matter.
struct Dropout {
  float rate = 0;  // in [0, 1)
  uint64_t key = 0;
  int64_t first_sample = 0;  // index of the first sample of x in its batch
  TensorView x, y;           // [samples, ...], under 2^32 elements a sample; may be the same
  // Index in its sample of the first element of each that x has, where x has parts of samples.
  int64_t first_element = 0;
};

// Weights in few bits, and where their numbers go.
struct WeightExpansion {
  WeightFormat format = WeightFormat::kBF16;  // any but kFP32
  const void* codes = nullptr;
  const float* scales = nullptr;  // null where the format has none
  TensorView weights;             // out: [rows, columns] in the compute type
};

// A copy of `columns` neighbouring elements of each row: to[i, to_column + j] = from[i, from_column
// + j].   from: [rows, a]   to: [rows, b]
struct ColumnCopy {
  TensorView from, to;  // of one type
  int64_t from_column = 0, to_column = 0, columns = 0;
};

// Self-attention with `heads` queries per position (Vaswani et al., 2017). Groups of heads /
// kv_heads queries share a key and a value (Ainslie et al., EMNLP 2023):
// y = softmax(q k^T / sqrt(head_size)) v. Where it is causal, a position sees itself and those
// before it, from the first one on that its first key and the window allow; otherwise it sees all
// positions that its sample's length counts.
struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0, head_size = 0;
  // Frequencies of rotary positions (Su et al., 2021), host [head_size / 2], read by NewAttention
  // only; null: none. Queries and keys are rotated by the angle position frequencies[i] in the
  // planes (i, i + head_size / 2), as Hugging Face does for Llama.
  const double* frequencies = nullptr;
  // Rate at which results of the softmax are dropped in training. Those of sample s are elements of
  // DropoutMask (dropout_key, first_sample + s), numbered like [first_head + heads, T, T] in
  // memory, of which these are the last heads.
  float dropout = 0;
  DType compute = DType::kF32;
  bool causal = true;
  int64_t first_head = 0;  // index of the first head, where other parts have those before it
  // Number of positions that a query sees at most, itself included; 0: any. For causal attention.
  int64_t window = 0;
};

struct AttentionForward {
  TensorView qkv;  // [batch, T, (heads + 2 kv_heads) head_size]: queries, keys, values
  TensorView y;    // [batch, T, heads head_size]
  // Out: [batch, heads, T], natural logarithm of the sum of exponentials of the scores that a query
  // sees. Null: an evaluation, without dropout.
  float* log_sum_exp = nullptr;
  uint64_t dropout_key = 0;
  int64_t first_sample = 0;  // index of the first sample of qkv in its batch
  // [batch], each 1 to T: number of a sample's leading positions whose keys are seen. Null: T. Not
  // for causal attention.
  const int32_t* lengths = nullptr;
  // [batch, T]: the first position whose key a query may see, in a sample never descending, and at
  // most the query's own. Null: 0. For causal attention.
  const int32_t* first_key = nullptr;
};

// Gradients of Forward, or of a Continue with log_sum_exp.
struct AttentionBackward {
  TensorView qkv, y;                   // Forward's
  TensorView dy, dqkv;                 // as y, as qkv; distinct memory
  const float* log_sum_exp = nullptr;  // Forward's, as are the two below
  uint64_t dropout_key = 0;
  int64_t first_sample = 0;
  // Set for a Continue: its cache and first_position. Later positions of a sequence must go first.
  TensorView cache = {};
  // [batch, 2, context, kv_heads, head_size]: gradients of the cache's rows, in the form in which
  // these are stored; zeros before the sequence's first Backward. Gradients of the rows before
  // first_position are added here. Those of the present positions, to which later positions have
  // added before, go into dqkv. Null for a Forward.
  float* dcache = nullptr;
  int64_t first_position = 0;
  const int32_t* lengths = nullptr;    // Forward's
  const int32_t* first_key = nullptr;  // Forward's
};

// T new positions of sequences. `cache` holds the keys and values of the earlier positions.
struct AttentionCached {
  TensorView qkv;  // [batch, T, (heads + 2 kv_heads) head_size], from first_position on
  TensorView y;    // [batch, T, heads head_size]
  // [batch, 2, context, kv_heads, head_size] in the compute type: keys (rotated if rotary), then
  // values. Rows first_position to first_position + T - 1 are written, those before them are read.
  TensorView cache;
  int64_t first_position = 0;
  float* log_sum_exp = nullptr;  // out, for a Backward: [batch, heads, T]. Null: inference
  // [batch, T]: as in AttentionForward, for the new positions; it counts from position 0.
  const int32_t* first_key = nullptr;
};

// Attention in blocks of queries, so that [T, T] is never in memory (FlashAttention; Dao et al.,
// NeurIPS 2022). Any batch and T. InvalidArgument if dropout would need 2^32 elements a sample.
class Attention {
 public:
  virtual ~Attention() = default;
  virtual Error Forward(const AttentionForward& arguments) = 0;
  virtual Error Backward(const AttentionBackward& arguments) = 0;
  // Computes new positions of a sequence, without dropout. InvalidArgument if first_position + T
  // exceeds the cache's context, or if the attention is not causal.
  virtual Error Continue(const AttentionCached& arguments) = 0;
};

struct PoolSpec {
  int64_t kernel = 0, stride = 1, padding = 0;  // pixels; padding never is the maximum
};

// One parameter of `n` values.
struct SgdParameter {
  float* value = nullptr;
  float* gradient = nullptr;
  float* velocity = nullptr;  // starts as zeros; null when momentum is 0
  int64_t n = 0;
  uint16_t* narrow = nullptr;  // out: the new value, rounded to bf16; null: not wanted
};

// PyTorch's SGD for all parameters, in one pass that also clears the gradients:
//   g = gradient_scale g + weight_decay p;  v = momentum v + g;
//   p -= lr (nesterov ? g + momentum v : v).
struct SgdUpdate {
  const SgdParameter* parameters = nullptr;  // host, [count]
  int64_t count = 0;
  float lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
  float gradient_scale = 1;
  const float* clip_factor = nullptr;  // used instead of gradient_scale if set; from ClipByNorm
};

// One parameter of `n` values.
struct AdamWParameter {
  float* value = nullptr;
  float* gradient = nullptr;
  float* mean = nullptr;    // mean of gradients; starts as zeros, as `square` does
  float* square = nullptr;  // mean of squared gradients
  int64_t n = 0;
  float weight_decay = 0;
  uint16_t* narrow = nullptr;  // as in SgdParameter
  // Set if the means are codes, kSignedMoments and kUnsignedMoments, in place of those above. The
  // update takes the new numbers, then these become codes.
  CodedMean coded_mean = {}, coded_square = {};

  bool is_coded() const { return coded_mean.codes != nullptr; }
};

// PyTorch's AdamW (Loshchilov & Hutter, ICLR 2019) for all parameters, in one pass that also clears
// the gradients:
//   g = gradient_scale g;  p -= lr weight_decay p;  m = beta1 m + (1 - beta1) g;
//   v = beta2 v + (1 - beta2) g^2;  p -= lr m' / (sqrt(v') + epsilon),
// where m' = m / (1 - beta1^step) and v' = v / (1 - beta2^step).
struct AdamWUpdate {
  const AdamWParameter* parameters = nullptr;  // host, [count]
  int64_t count = 0;
  int64_t step = 0;  // counted from 1
  double lr = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  float gradient_scale = 1;
  const float* clip_factor = nullptr;  // as in SgdUpdate
};

// A sum of two arrays: sum[i] = alpha a[i] + beta b[i]; each operation is rounded by itself. The
// memory may be the same.
struct Combination {
  float alpha = 1;
  const float* a = nullptr;
  float beta = 0;
  const float* b = nullptr;  // null: not added
  float* sum = nullptr;
  int64_t n = 0;
};

// A range of fp32 values, for sums of squares.
struct FloatRange {
  const float* values = nullptr;
  int64_t n = 0;
};

// Clipping by norm for a gradient that is complete here. `factor`, in device memory, becomes min(1,
// clip_norm / (norm + 1e-6)), computed in fp64 as in PyTorch's clip_grad_norm_. The norm is the
// square root of the sum, in order, of the ranges' SumsOfSquares. If that sum is not finite, the
// factor is NaN, and an update with it changes nothing.
struct NormClip {
  const FloatRange* ranges = nullptr;  // host, [count]
  int64_t count = 0;
  double clip_norm = 0;
  // out: [count], as SumsOfSquares'; in Device::host() memory, after Finish.
  double* sums = nullptr;
  float* factor = nullptr;
};

// Results of SoftmaxCrossEntropy and MeanSquaredError.
struct LossSums {
  double loss = 0;      // sum over rows, with the natural logarithm
  int64_t correct = 0;  // rows whose argmax is the label; the lower class wins ties. Of scores: 0
  int64_t counted = 0;  // rows that are not ignored
};

struct CrossEntropy {
  TensorView logits;    // [n, classes], or longer rows
  int64_t classes = 0;  // the first elements of a row; those behind are ignored
  TensorView dlogits;   // like logits, may be the same memory; absent: not wanted
  // [n], all below `classes`; memory of Device::host() that must not change until Finish. A row
  // with a negative label is ignored: it adds nothing to the sums, and its gradient is zero.
  const int32_t* labels = nullptr;
  int64_t batch_size = 0;  // dlogits is divided by it
};

struct SquaredErrors {
  TensorView outputs;   // [n, 1], or longer rows, of which the first element counts
  TensorView doutputs;  // like outputs, may be the same memory; absent: not wanted
  // [n], in `unit`; like the labels of CrossEntropy, also as to negative ones.
  const int32_t* scores = nullptr;
  double unit = 0;
  int64_t batch_size = 0;  // doutputs is divided by it
};

// Measures the time that a device takes for what a thread submits between Start and Stop. Not
// thread-safe.
class WorkTimer {
 public:
  virtual ~WorkTimer() = default;
  virtual Error Start() = 0;
  virtual Error Stop() = 0;
  // Returns the time. Called after a Finish that follows Stop; afterwards the timer may Start
  // again.
  virtual Error Seconds(double* seconds) = 0;
};

// Choices of how a backend computes. The CPU has none, and refuses tf32.
struct OpsOptions {
  bool deterministic = true;  // equal bits in every run and process; false: whatever is fastest
  bool tf32 = false;          // products of fp32 use TF32, sums fp32
};

class Ops {
 public:
  virtual ~Ops() = default;

  // Checks the compute type. FailedPrecondition names what the processor or device lacks for it;
  // InvalidArgument for a type that the backend never computes in.
  virtual Error CheckComputeType(DType compute) = 0;

  // Make a *conv, *linear or *attention, which the caller deletes. Return the errors of
  // CheckComputeType, and InvalidArgument for a shape.
  virtual Error NewConv2d(const Conv2dSpec& spec, Conv2d** conv) = 0;
  virtual Error NewLinear(const LinearSpec& spec, Linear** linear) = 0;
  virtual Error NewAttention(const AttentionSpec& spec, Attention** attention) = 0;

  // Normalizes each channel. Returns InvalidArgument if a batch's statistics are wanted and a
  // channel has only one value, whose variance says nothing.
  virtual Error NormalizeBatch(const BatchNormForward& arguments) = 0;
  virtual Error NormalizeBatchBackward(const BatchNormBackward& arguments) = 0;

  virtual Error NormalizeRows(const LayerNormForward& arguments) = 0;
  virtual Error NormalizeRowsBackward(const LayerNormBackward& arguments) = 0;
  virtual Error NormalizeHeads(const HeadNormForward& arguments) = 0;
  virtual Error NormalizeHeadsBackward(const HeadNormBackward& arguments) = 0;

  // Return InvalidArgument for an id outside the vocabulary, if device memory is the host's. On
  // other devices the id's row becomes NaN and its gradient is left out.
  virtual Error Embed(const Embedding& arguments) = 0;
  virtual Error EmbedBackward(const EmbeddingBackward& arguments) = 0;

  // Sets each sample's length to the number of positions up to the last whose id is not `pad`, and
  // to 1 if there is none.   ids: int32 [batch, T]   lengths: [batch]
  virtual Error CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths) = 0;
  // Sets types, int32 like ids, to 1 behind a sample's first `separator` up to the second one
  // (Devlin et al., NAACL 2019). All others are 0, as they all are without a second one.
  virtual Error TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types) = 0;

  // These work elementwise, with equal shapes; outputs may be inputs.
  virtual Error Relu(const TensorView& x, const TensorView& y) = 0;
  virtual Error ReluBackward(const TensorView& y, const TensorView& dy, const TensorView& dx) = 0;
  // Compute y = f(x) and dx = f'(x) dy.
  virtual Error Apply(Pointwise function, const TensorView& x, const TensorView& y) = 0;
  virtual Error ApplyBackward(Pointwise function, const TensorView& x, const TensorView& dy,
                              const TensorView& dx) = 0;
  // Returns InvalidArgument for a rate or a sample out of bounds.
  virtual Error Drop(const Dropout& arguments) = 0;
  virtual Error Add(const TensorView& a, const TensorView& b, const TensorView& sum) = 0;
  // Converts between fp32 and bf16 (or equal types: a copy). Widening is exact.
  virtual Error Convert(const TensorView& from, const TensorView& to) = 0;

  // Compute SwiGLU (Shazeer, 2020).   x: [..., 2 f]   y: [..., f] = silu(gate) up. Here gate is the
  // first half of x's row, up the second half, and silu(v) = v / (1 + exp(-v)).
  virtual Error Swiglu(const TensorView& x, const TensorView& y) = 0;
  virtual Error SwigluBackward(const TensorView& x, const TensorView& dy, const TensorView& dx) = 0;

  // Take the maximum of each window.   x: [n, h, w, c]   y: [n, h', w', c]. Of equal maxima, the
  // first in row order gets dy.
  virtual Error MaxPool(const PoolSpec& spec, const TensorView& x, const TensorView& y) = 0;
  virtual Error MaxPoolBackward(const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                                const TensorView& dx) = 0;
  // Take the maximum of each `group` neighbours (Goodfellow et al., ICML 2013).
  //   x: [..., group c]   y: [..., c]
  // The first of equal maxima gets dy.
  virtual Error Maxout(int64_t group, const TensorView& x, const TensorView& y) = 0;
  virtual Error MaxoutBackward(int64_t group, const TensorView& x, const TensorView& dy,
                               const TensorView& dx) = 0;
  // Copies the first g features of each row, with zeros where x has fewer.   x: [..., f]   y: [...,
  // g]. The same call on (dy, dx) is the backward pass.
  virtual Error Resize(const TensorView& x, const TensorView& y) = 0;
  virtual Error CopyColumns(const ColumnCopy& arguments) = 0;
  // Writes the numbers that the codes stand for. All backends give the same bits.
  virtual Error ExpandWeights(const WeightExpansion& arguments) = 0;
  // Puts a row before those of each sample.   row: [features]   x: [batch, T, features]   y:
  // [batch, T + 1, features]. Its backward pass adds to drow, sample after sample.
  virtual Error Prepend(const float* row, const TensorView& x, const TensorView& y) = 0;
  virtual Error PrependBackward(const TensorView& dy, const TensorView& dx, float* drow) = 0;
  // Computes the mean over pixels.   x: [n, h, w, c]   y: [n, c]
  virtual Error GlobalAvgPool(const TensorView& x, const TensorView& y) = 0;
  virtual Error GlobalAvgPoolBackward(const TensorView& dy, const TensorView& dx) = 0;
  // Convert [n, h, w, c] to [n, c h w] with pixels innermost, and back.
  virtual Error ToChannelsFirst(const TensorView& x, const TensorView& y) = 0;
  virtual Error ToChannelsLast(const TensorView& y, const TensorView& x) = 0;

  // Returns the number of elements, at least `classes`, that a row of a model's logits should have
  // so that products with it are fast.
  virtual int64_t RowOfLogits(int64_t classes) = 0;
  // Computes softmax cross-entropy: dlogits = (softmax(logits) - onehot(labels)) / batch_size, with
  // zeros behind the classes. Does not wait: *sums, memory of Device::host(), is valid after
  // Finish.
  virtual Error SoftmaxCrossEntropy(const CrossEntropy& arguments, LossSums* sums) = 0;
  // Computes squares of output - score, in fp64, and doutputs = 2 (output - score) / batch_size,
  // with zeros behind the first element. Does not wait, likewise.
  virtual Error MeanSquaredError(const SquaredErrors& arguments, LossSums* sums) = 0;

  virtual Error Sgd(const SgdUpdate& arguments) = 0;
  virtual Error AdamW(const AdamWUpdate& arguments) = 0;
  // Sets sums[i] to the sum of squares of ranges[i], added in fp64 in an order that does not depend
  // on the thread count. `ranges` and `sums` are host memory: [count].
  virtual Error SumsOfSquares(const FloatRange* ranges, int64_t count, double* sums) = 0;
  virtual Error ClipByNorm(const NormClip& arguments) = 0;
  virtual Error Combine(const Combination& arguments) = 0;
  virtual Error Zero(float* values, int64_t n) = 0;

  // Between these two calls, convolutions and products may put off what LoadWeights packs and what
  // BackwardWeights adds to gradients, to do it for many at once. So may NormalizeRowsBackward and
  // NormalizeHeadsBackward with what they add to dscale and dbias. Nobody reads gradients before
  // FinishWeights. JoinWeights forgets what a failed pass has put off.
  virtual void JoinWeights() = 0;
  virtual Error FinishWeights() = 0;

  // Makes a timer, which the caller deletes. Unimplemented where work has ended when its call
  // returns.
  virtual Error NewWorkTimer(WorkTimer** timer) = 0;
};

}  // namespace thinwire
