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

// topk's K for a scope of n elements: at least 1, at most n; 0 for n = 0.
int64_t NumKept(const CodecSpec& spec, int64_t n);

// uniform: bytes of ranges before the codes, and of the whole payload, which its shape fixes but
// for a constant tensor under fixed_point (below).
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

// topk: what says where the kept values stood.
enum class IndexCoding : uint8_t { kBitmap = 0, kPacked = 1, kRice = 2 };
constexpr size_t kTopKHeaderBytes = 8;
constexpr uint32_t kMaxRiceBits = 31;
// ceil(log2 n): what a packed index takes. Requires n < 2^32.
uint32_t PackedIndexBits(int64_t n);
// Not of Values::kUniform.
size_t BytesPerValue(Values values);
size_t TopKMaxPayloadBytes(const CodecSpec& spec, const Scopes& scopes);
// topk counts and places entries in 32 bits.
constexpr int64_t kTopKMaxElements = (int64_t{1} << 32) - 1;

// The casts: fp16 has its pre-scale exponent (i16) in front.
size_t CastPayloadBytes(DType to, int64_t elements);

// fp8: a pre-scale exponent (i16), then a byte per element.
constexpr size_t kFp8HeaderBytes = 2;
size_t Fp8PayloadBytes(int64_t elements);

}  // namespace thinwire
