// Numbers on which codecs and all backends' kernels agree: how a tensor is divided into scopes, how
// many entries topk keeps, how long payloads are. Plain data: plugins use it too. The full layouts
// are in docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// Division of a tensor into scopes. If not strided, scope s holds the elements [s * elements, (s +
// 1) * elements) in memory order; the last one may hold fewer. If strided (Scope::kChannel), it
// holds elements s, s + count, ...
struct Scopes {
  int64_t total = 0;     // elements of the tensor
  int64_t count = 0;     // scopes; 0 for an empty tensor
  int64_t elements = 0;  // per scope
  bool strided = false;

  // Returns the elements of the last scope; 0 if there is none.
  int64_t of_last() const { return strided ? elements : total - (count - 1) * elements; }
};
Shape ShapeOf(const TensorView& x);
Scopes ScopesOf(const Shape& shape, Scope scope, uint32_t group);
Scopes ScopesOf(const TensorView& x, Scope scope, uint32_t group);

// Returns an upper bound of the payload's bytes for a tensor of this shape and type, without the
// lossless stage. `spec.kind` is any but kPlugin.
size_t CodecMaxPayloadBytes(const CodecSpec& spec, const Shape& shape, DType dtype);

// Returns topk's K for a scope of n elements: at least 1, at most n; 0 for n = 0.
int64_t NumKept(const CodecSpec& spec, int64_t n);

// Sizes for uniform: bytes of ranges before the codes, and of the whole payload. The shape fixes
// both, except that a constant tensor under fixed_point (below) has a payload of its own. With
// rotation the key of its signs comes first.
constexpr size_t kRotationKeyBytes = 8;
size_t UniformHeaderBytes(const CodecSpec& spec, const Scopes& scopes);
size_t UniformPayloadBytes(const CodecSpec& spec, const Scopes& scopes);
size_t UniformMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);

// Quantiser grid of `bits` bits. Codes are 0 to `max_code`; `zero_code` means 0 in a symmetric
// range; `divisor` steps lead from 0 (or from the minimum) to the end of the range.
struct UniformGrid {
  int32_t max_code = 0;
  int32_t zero_code = 0;
  int32_t divisor = 0;
};
UniformGrid GridOf(const CodecSpec& spec);

// Pre-scale exponent of uniform, fixed_point, that marks a constant tensor. Its only value follows
// as fp32 in place of scales and codes.
constexpr int16_t kConstantTensor = INT16_MIN;
constexpr size_t kConstantTensorBytes = 6;

// Sizes for ecsq. The header has a step (bf16) per scope, the key of the noise under rounding
// dither, and the means of the first kMeans magnitudes if the codec has means. A byte per element
// follows, then each code that has no byte (an escape) as i32.
constexpr size_t kDitherKeyBytes = 8;
constexpr int kMeans = 4;
size_t EcsqHeaderBytes(const CodecSpec& spec, const Scopes& scopes);
int64_t MostEscapes(const CodecSpec& spec, int64_t elements);
size_t EcsqMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);

// Coding of the places of kept values in a payload of topk or threshold.
enum class IndexCoding : uint8_t { kBitmap = 0, kPacked = 1, kRice = 2 };
constexpr size_t kEntriesHeaderBytes = 8;
constexpr uint32_t kMaxRiceBits = 31;
// Returns ceil(log2 n), the bits of a packed index. Requires n < 2^32.
uint32_t PackedIndexBits(int64_t n);
// For topk and threshold: return how many entries a scope of n elements, or all scopes, may send.
int64_t MostEntriesOfScope(const CodecSpec& spec, int64_t n);
int64_t MostEntries(const CodecSpec& spec, const Scopes& scopes);
size_t EntriesMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);
// Largest tensor of topk, threshold and randomk, which count and place entries in 32 bits.
constexpr int64_t kSparseMaxElements = (int64_t{1} << 32) - 1;

// Sizes for randomk: the header is the seed and, for fp16 values, their pre-scale exponent.
constexpr size_t kSeedBytes = 8;
size_t RandomKHeaderBytes(const CodecSpec& spec);
size_t RandomKMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);

// For topk, threshold and randomk: returns the bytes of n kept values, without an exponent before
// them.
size_t ValueBytes(const CodecSpec& spec, int64_t n);
// Returns the codec that sends a flat tensor as `spec` sends its kept values. Requires values other
// than means, which no codec of flat tensors has.
CodecSpec CodecOfValues(const CodecSpec& spec);

// Sizes for values means: each group of kept values has an fp32 mean for each cell of magnitudes
// before its values' codes.
constexpr uint32_t kMostMeansBits = 4;
constexpr int kMostCells = 1 << (kMostMeansBits - 1);
HOST_DEVICE constexpr int CellsOf(uint32_t bits) { return 1 << (bits - 1); }
size_t MeansHeaderBytes(const CodecSpec& spec, int64_t n);

// For the casts: returns the element type in which `spec` (none, fp16 or bf16) sends a tensor. fp16
// has its pre-scale exponent (i16) in front.
DType WireType(const CodecSpec& spec, DType tensor_type);
size_t CastPayloadBytes(DType to, int64_t elements);

// Sizes for fp8: a pre-scale exponent (i16), then a byte per element.
constexpr size_t kFp8HeaderBytes = 2;
size_t Fp8PayloadBytes(int64_t elements);

// Returns the bytes of blockwise8's payload: an absmax (fp32) per block, then a byte per element.
// Requires block > 0.
size_t Blockwise8PayloadBytes(uint32_t block, int64_t elements);

}  // namespace thinwire
