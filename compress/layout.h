// The numbers that codecs and every backend's kernels agree on: how a tensor falls into scopes, how
// many entries topk keeps, how long payloads are. Plain data: plugins use it too.
// The layouts in full: docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// Scope s of a contiguous kind holds the elements [s * elements, (s + 1) * elements) in memory
// order, the last one perhaps fewer. Of a strided kind (channel) it holds s, s + count, ...
struct Scopes {
  int64_t total = 0;     // elements of the tensor
  int64_t count = 0;     // scopes; 0 for an empty tensor
  int64_t elements = 0;  // per scope
  bool strided = false;
};
Scopes ScopesOf(const Shape& shape, Scope scope, uint32_t group);
Scopes ScopesOf(const TensorView& x, Scope scope, uint32_t group);

// No payload of our own codec `spec.kind` (any but kPlugin), without lossless stage, is longer for
// a tensor of this shape and type.
size_t CodecMaxPayloadBytes(const CodecSpec& spec, const Shape& shape, DType dtype);

// topk's K for a scope of n elements: at least 1, at most n; 0 for n = 0.
int64_t NumKept(const CodecSpec& spec, int64_t n);

// uniform: bytes of ranges before the codes, and of the whole payload, which its shape fixes but
// for a constant tensor under fixed_point (below). With rotation the key of its signs comes first.
constexpr size_t kRotationKeyBytes = 8;
size_t UniformHeaderBytes(const CodecSpec& spec, const Scopes& scopes);
size_t UniformPayloadBytes(const CodecSpec& spec, const Scopes& scopes);
size_t UniformMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);

// The grid of `bits` bits: codes 0 to `max_code`, of which `zero_code` means 0 in a symmetric
// range, and `divisor` steps from 0 (or from the minimum) to the end of the range.
struct UniformGrid {
  int32_t max_code = 0;
  int32_t zero_code = 0;
  int32_t divisor = 0;
};
UniformGrid GridOf(const CodecSpec& spec);

// uniform, fixed_point: the pre-scale exponent that marks a constant tensor, whose only value
// follows as fp32 in place of scales and codes.
constexpr int16_t kConstantTensor = INT16_MIN;
constexpr size_t kConstantTensorBytes = 6;

// ecsq: a step (bf16) per scope, the key of the noise with rounding dither, the means of the first
// magnitudes where there are means; then a byte per element, and each code that has none as i32.
constexpr size_t kDitherKeyBytes = 8;
constexpr int kMeans = 4;
size_t EcsqHeaderBytes(const CodecSpec& spec, const Scopes& scopes);
int64_t MostEscapes(const CodecSpec& spec, int64_t elements);
size_t EcsqMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);

// topk, threshold: what says where the kept values stood.
enum class IndexCoding : uint8_t { kBitmap = 0, kPacked = 1, kRice = 2 };
constexpr size_t kEntriesHeaderBytes = 8;
constexpr uint32_t kMaxRiceBits = 31;
// ceil(log2 n): what a packed index takes. Requires n < 2^32.
uint32_t PackedIndexBits(int64_t n);
// topk, threshold: how many entries a scope of n elements, or all scopes, may send.
int64_t MostEntriesOfScope(const CodecSpec& spec, int64_t n);
int64_t MostEntries(const CodecSpec& spec, const Scopes& scopes);
size_t EntriesMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);
// topk, threshold and randomk count and place entries in 32 bits.
constexpr int64_t kSparseMaxElements = (int64_t{1} << 32) - 1;

// randomk: the seed, and before fp16 values their pre-scale exponent.
constexpr size_t kSeedBytes = 8;
size_t RandomKHeaderBytes(const CodecSpec& spec);
size_t RandomKMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);

// topk, threshold, randomk: bytes of n kept values, without an exponent before them.
size_t ValueBytes(const CodecSpec& spec, int64_t n);
// The codec that sends a flat tensor as `spec` sends its kept values.
CodecSpec CodecOfValues(const CodecSpec& spec);

// low_rank: a tensor as matrices whose rows lie one behind the other. A row is the last axis; of a
// tensor of one axis, an element.
struct MatrixView {
  int64_t count = 0;  // matrices; 0 for an empty tensor
  int64_t rows = 0;   // of each
  int64_t columns = 0;
};
MatrixView MatricesOf(const Shape& shape, bool per_sample);
MatrixView MatricesOf(const TensorView& x, bool per_sample);
// A rank above rows or columns counts as the smaller of these: low_rank refuses it with a tensor.
size_t LowRankPayloadBytes(const CodecSpec& spec, const MatrixView& view);

// The casts: the element type that `spec` (none, fp16 or bf16) sends a tensor in; fp16 has its
// pre-scale exponent (i16) in front.
DType WireType(const CodecSpec& spec, DType tensor_type);
size_t CastPayloadBytes(DType to, int64_t elements);

// fp8: a pre-scale exponent (i16), then a byte per element.
constexpr size_t kFp8HeaderBytes = 2;
size_t Fp8PayloadBytes(int64_t elements);

// blockwise8: an absmax (fp32) per block, then a byte per element. Requires block > 0.
size_t Blockwise8PayloadBytes(uint32_t block, int64_t elements);

}  // namespace thinwire
