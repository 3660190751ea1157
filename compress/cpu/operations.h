// Operations of the CPU's kernels, and what other codecs need of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Kernels of the CPU. Encode and Decode are in kernels.cc, every other operation in a file of its
// name or its codec's.
class CpuKernels final : public CodecKernels {
 public:
  explicit CpuKernels(int threads) : threads_(threads) {}

  Error Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
               const PayloadBuffer& payload) override;
  Error Decode(const PayloadView& payload, const CodecSpec& spec, const KernelContext& context,
               const TensorView& x) override;
  // Project and Reproject run on the calling thread, however many threads there are.
  Error Project(const CodecSpec& spec, const TensorView& x, const float* start, float* p,
                float* largest) override;
  Error Reproject(const CodecSpec& spec, const TensorView& x, float largest, const float* p,
                  float* q) override;
  Error CastTo(DType wire, const TensorView& x, const PayloadBuffer& payload) override;
  Error CastFrom(const PayloadView& payload, DType wire, const TensorView& x) override;
  Error Compact(const TensorView& x, const SupportView& support,
                const TensorView& compact) override;
  Error Expand(const TensorView& compact, const SupportView& support, const TensorView& x) override;
  Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) override;
  Error Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) override;
  Error CombineRows(const RowSums& sums) override;
  // Takes sums in eight interleaved lanes over each stretch of kMostOfOneThread elements, one
  // stretch after the other, so they are the same on every machine.
  Error Compare(const TensorView& x, const TensorView& y, Sums* sums) override;

 private:
  const int threads_;
};

// Returns all of x as fp32, with zeros where there is no support. A null `support` means that all
// entries have it. The result is x's own memory, or memory of this thread that is valid until its
// next call.
const float* SupportedFloats(const TensorView& x, const SupportView* support, int threads);

// Overwrites x[0, support.elements) with zeros where no bit is set.
void KeepSupported(const SupportView& support, int threads, float* x);

}  // namespace thinwire
