// The codec kernels of one backend: one entry per direction of a codec, each with a CPU twin
// (the definition) and a CUDA twin. Pure-virtual and plain data: backends may be plugins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// A bit per element of a tensor, bit i % 64 of word i / 64, unused bits zero; device memory.
struct SupportView {
  const uint64_t* words = nullptr;
  int64_t elements = 0;
  int64_t count = 0;  // of set bits
};

// What a sparse codec's message may use besides its tensor: MessageContext as plain data.
struct SparseContext {
  uint64_t random_key = 0;               // encode only
  const SupportView* support = nullptr;  // of as many elements as x; null: all may be sent
};

// The rows of a message, one per sample, all of one length and type (fp32 or bf16): one behind the
// other from `data` on, or, where that is null, wherever `each` says, a host array that is read
// during the call. A row without memory reads as zeros and takes nothing.
struct RowsView {
  void* data = nullptr;
  void* const* each = nullptr;
  DType dtype = DType::kF32;
};

// out = a x + b y, element by element, in fp32: each product and the sum rounded on its own, then
// to the type of `out`. A row of `out` may be that of x or y.
struct RowSums {
  int64_t count = 0;     // rows
  int64_t elements = 0;  // of each
  float a = 1, b = 1;
  RowsView x, y, out;
  RowsView also;  // gets the sums too, in a type of its own
  // A sum that is NaN or infinite is zero in `out`, but not in `also`.
  bool zero_nonfinite = false;
};

// Payload memory is host memory. Encoders check that `capacity` suffices, write the payload's
// length to *bytes and fail with InvalidArgument on NaN or infinity (except the casts, which
// carry them). Decoders treat `payload` as hostile. Any thread, several at once.
//
// Encoders, decoders, FindNonzeros and Compare have finished when they return. CombineRows, Compact
// and Expand are submitted in the thread's order and may run later (tensor/device.h).
class CodecKernels {
 public:
  virtual ~CodecKernels() = default;

  // `to` is the element type on the wire; narrowing rounds to nearest even.
  virtual Error CastEncode(const TensorView& x, DType to, uint8_t* payload, size_t capacity,
                           size_t* bytes) = 0;
  virtual Error CastDecode(const uint8_t* payload, size_t bytes, DType from,
                           const TensorView& x) = 0;

  // To nearest even, after a power of two that brings the largest |x| to the format's upper end.
  // The decoder refuses codes that are no finite number in fp32.
  virtual Error Fp8Encode(const TensorView& x, Fp8Format format, uint8_t* payload, size_t capacity,
                          size_t* bytes) = 0;
  virtual Error Fp8Decode(const uint8_t* payload, size_t bytes, Fp8Format format,
                          const TensorView& x) = 0;

  // Per `block` elements absmax, and of each fp32(x / absmax) the nearest entry of the codebook
  // (docs/compression.md), the lower one in a tie.
  virtual Error Blockwise8Encode(const TensorView& x, uint32_t block, uint8_t* payload,
                                 size_t capacity, size_t* bytes) = 0;
  virtual Error Blockwise8Decode(const uint8_t* payload, size_t bytes, uint32_t block,
                                 const TensorView& x) = 0;

  // With Rotation::kHadamard the payload begins with `random_key`, whose numbers are the signs; the
  // rest is of the rotated tensor in fp32, its rounding by the numbers of ~random_key.
  virtual Error UniformEncode(const TensorView& x, const CodecSpec& spec, uint64_t random_key,
                              uint8_t* payload, size_t capacity, size_t* bytes) = 0;
  virtual Error UniformDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                              const TensorView& x) = 0;

  // topk with indices of its own. Entries without support are zeros, whatever they hold. K counts
  // a scope's elements, supported or not; where an entry stood is its rank among the supported.
  virtual Error TopKEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                           uint8_t* payload, size_t capacity, size_t* bytes) = 0;
  // The same payload with the entries of at least the threshold, which is computed in the order of
  // docs/compression.md.
  virtual Error ThresholdEncode(const TensorView& x, const CodecSpec& spec,
                                const SparseContext& context, uint8_t* payload, size_t capacity,
                                size_t* bytes) = 0;
  // Of either.
  virtual Error EntriesDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                              const SparseContext& context, const TensorView& x) = 0;

  // Which entries are kept follows from the seed (docs/compression.md): element i draws number i of
  // the seed's random stream, and the K highest of each scope are kept, of those with support.
  virtual Error RandomKEncode(const TensorView& x, const CodecSpec& spec,
                              const SparseContext& context, uint8_t* payload, size_t capacity,
                              size_t* bytes) = 0;
  virtual Error RandomKDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                              const SparseContext& context, const TensorView& x) = 0;

  // The elements of x whose bits are set, in memory order. `compact`: [support.count], fp32 or of
  // x's type. Requires support.elements == x.elements(), as does Expand.
  virtual Error Compact(const TensorView& x, const SupportView& support,
                        const TensorView& compact) = 0;
  // The inverse: overwrites all of x, with zero where no bit is set. Narrows to nearest even.
  virtual Error Expand(const TensorView& compact, const SupportView& support,
                       const TensorView& x) = 0;

  // `warm_start`: [columns, rank] in host memory, per matrix, as the payload before had it; or
  // null. InvalidArgument if the rank is not below rows and columns (see MatricesOf).
  virtual Error LowRankEncode(const TensorView& x, const CodecSpec& spec, const float* warm_start,
                              uint8_t* payload, size_t capacity, size_t* bytes) = 0;
  virtual Error LowRankDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                              const TensorView& x) = 0;

  // Sets the bits of the elements that are not +-0; `words` holds ceil(elements / 64) words.
  virtual Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) = 0;

  virtual Error CombineRows(const RowSums& sums) = 0;
  // out = a x + b y of whole tensors, of one shape.
  Error Combine(float a, const TensorView& x, float b, const TensorView& y, const TensorView& out) {
    RowSums sums;
    sums.count = 1;
    sums.elements = out.elements();
    sums.a = a;
    sums.b = b;
    sums.x = {x.data, nullptr, x.dtype};
    sums.y = {y.data, nullptr, y.dtype};
    sums.out = {out.data, nullptr, out.dtype};
    return CombineRows(sums);
  }

  // ||x - y||^2, ||x||^2, ||y||^2 and <x, y> in fp64, and the non-zeros of x and of y.
  struct Sums {
    double difference = 0, x = 0, y = 0, product = 0;
    int64_t nonzeros_x = 0, nonzeros_y = 0;
  };
  virtual Error Compare(const TensorView& x, const TensorView& y, Sums* sums) = 0;
};

}  // namespace thinwire
