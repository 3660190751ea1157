// Codec kernels of one backend. Every codec has the same two entries, Encode and Decode, with a CPU
// twin (the definition) and a CUDA twin. Pure-virtual and plain data: backends may be plugins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Bitmap with a bit per element of a tensor: bit i % 64 of word i / 64 is element i's, unused bits
// are zero. In device memory.
struct SupportView {
  const uint64_t* words = nullptr;
  int64_t elements = 0;
  int64_t count = 0;  // number of set bits
};

// Inputs of a message besides its tensor: MessageContext as plain data.
struct KernelContext {
  // Key of the message's counter-based random numbers; for encoders only.
  uint64_t random_key = 0;
  // For topk with indices of its own, threshold and randomk: a bit per element of x that may be
  // sent; null if any may. Entries without support count as zeros, whatever they hold.
  const SupportView* support = nullptr;
  // For low_rank's encoder: [columns, rank] for each matrix, in host memory, as the payload before
  // had it; null for a fresh start.
  const float* warm_start = nullptr;
};

// Memory that an encoder writes its payload to.
struct PayloadBuffer {
  uint8_t* data = nullptr;
  size_t capacity = 0;
  size_t* bytes = nullptr;  // set to the payload's length
  // True of memory of the tensor's device, aligned to 16, where the host cannot read it.
  bool is_on_device = false;

  // Returns the memory behind the first n bytes. Whoever wrote those n bytes adds them to *bytes.
  PayloadBuffer behind(size_t n) const { return {data + n, capacity - n, bytes, is_on_device}; }
};

// Payload in memory. Its bytes may come from anywhere and are not trusted.
struct PayloadView {
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  bool is_on_device = false;  // as of PayloadBuffer

  // Returns the bytes behind the first n.
  PayloadView behind(size_t n) const { return {data + n, bytes - n, is_on_device}; }
};

// Rows of a message, one per sample, all of one length and type (fp32 or bf16). They lie one after
// the other from `data` on. If `data` is null, `each`, a host array that is read during the call,
// says where each row lies. A row without memory reads as zeros, and nothing is written to it.
struct RowsView {
  void* data = nullptr;
  void* const* each = nullptr;
  DType dtype = DType::kF32;
};

// Arguments of CombineRows: out = a x + b y, element by element, in fp32. Both products and the sum
// are rounded to fp32 on their own, then the sum to the type of `out`. A row of `out` may be the
// row of x or y.
struct RowSums {
  int64_t count = 0;     // number of rows
  int64_t elements = 0;  // of each row
  float a = 1, b = 1;
  RowsView x, y, out;
  RowsView also;  // a second output, in a type of its own
  // If true, a sum that is NaN or infinite is zero in `out`, but not in `also`.
  bool zero_nonfinite = false;
};

class EntropyKernels;

// Kernels of one backend, callable from any thread, several at once.
//
// Encode, Decode, Project, Reproject, the casts, FindNonzeros and Compare have finished when they
// return. CombineRows, Multiply, Compact and Expand are submitted in the thread's order and may run
// later (tensor/device.h).
class CodecKernels {
 public:
  virtual ~CodecKernels() = default;

  // Writes the payload of x as docs/compression.md defines it for spec.kind, which is any but
  // kPlugin. InvalidArgument if the capacity does not suffice (CodecMaxPayloadBytes in layout.h
  // always does), OutOfRange if x holds NaN or infinity and the codec is no cast. Kernels ignore
  // what `spec` says of the lossless stage and, except for codecs that take context.support, of a
  // support: other codecs that wrap these see to it.
  //
  // Payloads are in host memory, or on the device where codes_on_device() says so.
  virtual Error Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                       const PayloadBuffer& payload) = 0;
  // Decodes `payload` and overwrites all of x. Treats the payload as hostile: InvalidArgument if it
  // is malformed or not for x; x is then unspecified. What is said of a payload on the device is
  // not for people: who wants to know decodes a copy on the host.
  virtual Error Decode(const PayloadView& payload, const CodecSpec& spec,
                       const KernelContext& context, const TensorView& x) = 0;
  // Returns whether Encode and Decode take payloads in the device's memory, of every kind but
  // low_rank.
  virtual bool codes_on_device() const { return false; }

  // Compute the two products of low_rank's power iteration, for tensors whose factors are added up
  // between them (codecs/power_iteration.h). x is one matrix M, whatever spec.per_sample says.
  // Factors are fp32 in host memory.
  //
  // Project computes P = M Q, [rows, rank], with the columns of Q normalised. `start` is Q,
  // [columns, rank], or null for a fresh one. *largest becomes the largest magnitude in M.
  // OutOfRange if x holds NaN or infinity, InvalidArgument if fp32 cannot hold sums of such P.
  virtual Error Project(const CodecSpec& spec, const TensorView& x, const float* start, float* p,
                        float* largest) = 0;
  // Computes Q = M^T P, [columns, rank]. `largest` is what Project found. InvalidArgument as there.
  virtual Error Reproject(const CodecSpec& spec, const TensorView& x, float largest, const float* p,
                          float* q) = 0;

  // Write and read the payloads of the codecs none, fp16 and bf16: x as type `wire`, rounded to
  // nearest even.
  virtual Error CastTo(DType wire, const TensorView& x, const PayloadBuffer& payload) = 0;
  virtual Error CastFrom(const PayloadView& payload, DType wire, const TensorView& x) = 0;

  // Copies the elements of x whose bits are set to `compact`, in memory order. `compact` is
  // [support.count], fp32 or of x's type. Requires support.elements == x.elements(), as does
  // Expand.
  virtual Error Compact(const TensorView& x, const SupportView& support,
                        const TensorView& compact) = 0;
  // Inverts Compact: overwrites all of x, with zero where no bit is set. Narrows to nearest even.
  virtual Error Expand(const TensorView& compact, const SupportView& support,
                       const TensorView& x) = 0;

  // Sets `words` to the bitmap of the elements that are not +-0, and *count to their number.
  // `words` holds ceil(elements / 64) words.
  virtual Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) = 0;

  // Computes out = x factor. A row of x, along its last axis, has k elements; it becomes a row of n
  // elements. `factor` is [k, n], fp32. x and out are fp32 or bf16 and do not overlap.
  //
  // Element c of a row is (x[0] f[0][c] + x[1] f[1][c]) + ..., summed from left to right, from +0
  // on. Each product and each sum is rounded on its own. Products with x[j] = 0 may be left out, so
  // factors must be finite.
  virtual Error Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) = 0;

  // Returns the entropy coder of this backend (entropy/kernels.h), owned by the kernels. Null if
  // the lossless stage runs on the host, to which Encode brings payloads.
  virtual EntropyKernels* entropy() { return nullptr; }

  // Computes `sums`, see RowSums.
  virtual Error CombineRows(const RowSums& sums) = 0;
  // Computes out = a x + b y for whole tensors of one shape.
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

  // Sums that compare two tensors: ||x - y||^2, ||x||^2, ||y||^2 and <x, y> in fp64, and the number
  // of non-zeros of x and of y.
  struct Sums {
    double difference = 0, x = 0, y = 0, product = 0;
    int64_t nonzeros_x = 0, nonzeros_y = 0;
  };
  virtual Error Compare(const TensorView& x, const TensorView& y, Sums* sums) = 0;
};

}  // namespace thinwire
