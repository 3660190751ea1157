// Codec kernels on a GPU, which give the bytes and bits of compress/cpu/kernels.h.
#pragma once

#include <cstdint>

#include "compress/entropy/kernels.h"
#include "compress/kernels.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Kernels of a GPU. Encode, Decode and frames are in kernels.cc, every other operation in a file of
// its name or its codec's. All but Compare and low_rank's products are equal to the CPU's to the
// last bit.
//
// Codecs have the entropy coder behind them. A payload stays on the device and only its frame
// leaves it, unless the frame would not be shorter.
class CudaKernels final : public CodecKernels, public EntropyKernels {
 public:
  explicit CudaKernels(CudaDevice* device) : device_(device) {}

  Error Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
               const PayloadBuffer& payload) override;
  Error Decode(const PayloadView& payload, const CodecSpec& spec, const KernelContext& context,
               const TensorView& x) override;
  bool codes_on_device() const override { return true; }
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
  EntropyKernels* entropy() override { return this; }
  Error CombineRows(const RowSums& sums) override;
  // Finds the CPU's counts. Sums are of the same fp64 products in another order, which data and
  // shape alone fix. Each level of adding moves a sum of squares from the CPU's by at most a few
  // units in the last place: in all far below 1e-12 of itself. The sum of x y differs by as large a
  // share of the sum of |x y|.
  Error Compare(const TensorView& x, const TensorView& y, Sums* sums) override;

  Error EncodeFrame(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                    const CodesView& codes, const PayloadBuffer& payload, bool* is_frame) override;
  Error DecodeFrame(const PayloadView& frame, size_t most, const CodecSpec& spec,
                    const KernelContext& context, const TensorView& x) override;

 private:
  CudaDevice* const device_;
};

}  // namespace thinwire
