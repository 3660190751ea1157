// The codec kernels of one backend. Every codec has the same two entries, Encode and Decode, with a
// CPU twin (the definition) and a CUDA twin. Pure-virtual and plain data: backends may be plugins.
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

// What a message may use besides its tensor: MessageContext as plain data.
struct KernelContext {
  // Encoders only: the key of the message's counter-based random numbers.
  uint64_t random_key = 0;
  // topk with indices of its own, threshold and randomk: a bit per element of x; null: any element
  // may be sent. Entries without support are zeros, whatever they hold.
  const SupportView* support = nullptr;
  // low_rank's encoder: [columns, rank] in host memory, per matrix, as the payload before had it;
  // null: a fresh start.
  const float* warm_start = nullptr;
};

// Host memory that an encoder writes its payload to.
struct PayloadBuffer {
  uint8_t* data = nullptr;
  size_t capacity = 0;
  size_t* bytes = nullptr;  // gets the payload's length

  // What lies behind the first n bytes, whose writer adds them to *bytes.
  PayloadBuffer behind(size_t n) const { return {data + n, capacity - n, bytes}; }
};

// A payload in host memory, of any origin.
struct PayloadView {
  const uint8_t* data = nullptr;
  size_t bytes = 0;

  PayloadView behind(size_t n) const { return {data + n, bytes - n}; }
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

class EntropyKernels;

// Any thread, several at once.
//
// Encode, Decode, the casts, FindNonzeros and Compare have finished when they return. CombineRows,
// Multiply, Compact and Expand are submitted in the thread's order and may run later
// (tensor/device.h).
class CodecKernels {
 public:
  virtual ~CodecKernels() = default;

  // Writes the payload of x as docs/compression.md defines it for spec.kind, which is any but
  // kPlugin. InvalidArgument if the capacity does not suffice (CodecMaxPayloadBytes in layout.h
  // always does), OutOfRange if x holds NaN or infinity and the codec is no cast. What `spec` says
  // of the lossless stage and, but for codecs that take context.support, of a support is none of
  // the kernels' business: other codecs wrap these.
  virtual Error Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                       const PayloadBuffer& payload) = 0;
  // Overwrites all of x. Treats the payload as hostile: InvalidArgument if it is malformed or not
  // for x, which is then unspecified.
  virtual Error Decode(const PayloadView& payload, const CodecSpec& spec,
                       const KernelContext& context, const TensorView& x) = 0;

  // The codecs none, fp16 and bf16 with the type on the wire named: x in another type, rounded to
  // nearest even.
  virtual Error CastTo(DType wire, const TensorView& x, const PayloadBuffer& payload) = 0;
  virtual Error CastFrom(const PayloadView& payload, DType wire, const TensorView& x) = 0;

  // The elements of x whose bits are set, in memory order. `compact`: [support.count], fp32 or of
  // x's type. Requires support.elements == x.elements(), as does Expand.
  virtual Error Compact(const TensorView& x, const SupportView& support,
                        const TensorView& compact) = 0;
  // The inverse: overwrites all of x, with zero where no bit is set. Narrows to nearest even.
  virtual Error Expand(const TensorView& compact, const SupportView& support,
                       const TensorView& x) = 0;

  // Sets the bits of the elements that are not +-0; `words` holds ceil(elements / 64) words.
  virtual Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) = 0;

  // out = x factor: rows of x, its last axis, of k elements become rows of n, with factor [k, n] of
  // fp32. Element c of a row is (x[0] f[0][c] + x[1] f[1][c]) + ..., from left to right and from +0
  // on, each product and sum rounded on its own; products with x[j] = 0 may be left out, so that
  // factors are finite. x and out: fp32 or bf16, which do not overlap.
  virtual Error Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) = 0;

  // The lossless stage entropy beside the kernels (entropy_kernels.h), theirs; null: it is on the
  // host, whither Encode brings payloads.
  virtual EntropyKernels* entropy() { return nullptr; }

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
