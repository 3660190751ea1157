#include "compress/cuda/kernels.h"

#include "compress/cuda/combine.h"
#include "compress/cuda/compare.h"
#include "compress/cuda/low_rank.h"

namespace thinwire {
namespace {

Error Missing(const char* entry) {
  return MakeError(absl::StatusCode::kUnimplemented, "%s: not on the GPU", entry);
}

class CudaKernels final : public CodecKernels {
 public:
  explicit CudaKernels(CudaDevice* device) : device_(device) {}

  Error CastEncode(const TensorView&, DType, uint8_t*, size_t, size_t*) override {
    return Missing("CastEncode");
  }
  Error CastDecode(const uint8_t*, size_t, DType, const TensorView&) override {
    return Missing("CastDecode");
  }
  Error Fp8Encode(const TensorView&, Fp8Format, uint8_t*, size_t, size_t*) override {
    return Missing("Fp8Encode");
  }
  Error Fp8Decode(const uint8_t*, size_t, Fp8Format, const TensorView&) override {
    return Missing("Fp8Decode");
  }
  Error Blockwise8Encode(const TensorView&, uint32_t, uint8_t*, size_t, size_t*) override {
    return Missing("Blockwise8Encode");
  }
  Error Blockwise8Decode(const uint8_t*, size_t, uint32_t, const TensorView&) override {
    return Missing("Blockwise8Decode");
  }
  Error UniformEncode(const TensorView&, const CodecSpec&, uint64_t, uint8_t*, size_t,
                      size_t*) override {
    return Missing("UniformEncode");
  }
  Error UniformDecode(const uint8_t*, size_t, const CodecSpec&, const TensorView&) override {
    return Missing("UniformDecode");
  }
  Error TopKEncode(const TensorView&, const CodecSpec&, const SparseContext&, uint8_t*, size_t,
                   size_t*) override {
    return Missing("TopKEncode");
  }
  Error ThresholdEncode(const TensorView&, const CodecSpec&, const SparseContext&, uint8_t*, size_t,
                        size_t*) override {
    return Missing("ThresholdEncode");
  }
  Error EntriesDecode(const uint8_t*, size_t, const CodecSpec&, const SparseContext&,
                      const TensorView&) override {
    return Missing("EntriesDecode");
  }
  Error RandomKEncode(const TensorView&, const CodecSpec&, const SparseContext&, uint8_t*, size_t,
                      size_t*) override {
    return Missing("RandomKEncode");
  }
  Error RandomKDecode(const uint8_t*, size_t, const CodecSpec&, const SparseContext&,
                      const TensorView&) override {
    return Missing("RandomKDecode");
  }
  Error Compact(const TensorView&, const SupportView&, const TensorView&) override {
    return Missing("Compact");
  }
  Error Expand(const TensorView&, const SupportView&, const TensorView&) override {
    return Missing("Expand");
  }
  Error LowRankEncode(const TensorView& x, const CodecSpec& spec, const float* warm_start,
                      uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CudaLowRankEncode(device_, x, spec, warm_start, payload, capacity, bytes);
  }
  Error LowRankDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const TensorView& x) override {
    return CudaLowRankDecode(device_, payload, bytes, spec, x);
  }
  Error FindNonzeros(const TensorView&, uint64_t*, int64_t*) override {
    return Missing("FindNonzeros");
  }
  Error CombineRows(const RowSums& sums) override { return CudaCombineRows(device_, sums); }
  Error Compare(const TensorView& x, const TensorView& y, Sums* sums) override {
    return CudaCompare(device_, x, y, sums);
  }

 private:
  CudaDevice* const device_;
};

}  // namespace

std::unique_ptr<CodecKernels> NewCudaCodecKernels(CudaDevice* device) {
  return std::make_unique<CudaKernels>(device);
}

}  // namespace thinwire
