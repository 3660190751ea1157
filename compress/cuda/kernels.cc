#include "compress/cuda/kernels.h"

#include "compress/cuda/blockwise8.h"
#include "compress/cuda/cast.h"
#include "compress/cuda/combine.h"
#include "compress/cuda/compact.h"
#include "compress/cuda/compare.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/fp8.h"
#include "compress/cuda/low_rank.h"
#include "compress/cuda/nonzeros.h"
#include "compress/cuda/randomk.h"
#include "compress/cuda/rotated_uniform.h"
#include "compress/cuda/threshold.h"
#include "compress/cuda/topk.h"
#include "compress/cuda/uniform.h"

namespace thinwire {
namespace {

class CudaKernels final : public CodecKernels {
 public:
  explicit CudaKernels(CudaDevice* device) : device_(device) {}

  Error CastEncode(const TensorView& x, DType to, uint8_t* payload, size_t capacity,
                   size_t* bytes) override {
    return CudaCastEncode(device_, x, to, payload, capacity, bytes);
  }
  Error CastDecode(const uint8_t* payload, size_t bytes, DType from, const TensorView& x) override {
    return CudaCastDecode(device_, payload, bytes, from, x);
  }
  Error Fp8Encode(const TensorView& x, Fp8Format format, uint8_t* payload, size_t capacity,
                  size_t* bytes) override {
    return CudaFp8Encode(device_, x, format, payload, capacity, bytes);
  }
  Error Fp8Decode(const uint8_t* payload, size_t bytes, Fp8Format format,
                  const TensorView& x) override {
    return CudaFp8Decode(device_, payload, bytes, format, x);
  }
  Error Blockwise8Encode(const TensorView& x, uint32_t block, uint8_t* payload, size_t capacity,
                         size_t* bytes) override {
    return CudaBlockwise8Encode(device_, x, block, payload, capacity, bytes);
  }
  Error Blockwise8Decode(const uint8_t* payload, size_t bytes, uint32_t block,
                         const TensorView& x) override {
    return CudaBlockwise8Decode(device_, payload, bytes, block, x);
  }
  Error UniformEncode(const TensorView& x, const CodecSpec& spec, uint64_t random_key,
                      uint8_t* payload, size_t capacity, size_t* bytes) override {
    if (spec.rotation == Rotation::kHadamard) {
      return CudaRotatedUniformEncode(device_, x, spec, random_key, payload, capacity, bytes);
    }
    return CudaUniformEncode(device_, x, spec, random_key, payload, capacity, bytes);
  }
  Error UniformDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const TensorView& x) override {
    if (spec.rotation == Rotation::kHadamard) {
      return CudaRotatedUniformDecode(device_, payload, bytes, spec, x);
    }
    return CudaUniformDecode(device_, payload, bytes, spec, x);
  }
  Error TopKEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                   uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CudaTopKEncode(device_, x, spec, context, payload, capacity, bytes);
  }
  Error ThresholdEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                        uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CudaThresholdEncode(device_, x, spec, context, payload, capacity, bytes);
  }
  Error EntriesDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const SparseContext& context, const TensorView& x) override {
    return CudaEntriesDecode(device_, payload, bytes, spec, context, x);
  }
  Error RandomKEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                      uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CudaRandomKEncode(device_, x, spec, context, payload, capacity, bytes);
  }
  Error RandomKDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const SparseContext& context, const TensorView& x) override {
    return CudaRandomKDecode(device_, payload, bytes, spec, context, x);
  }
  Error Compact(const TensorView& x, const SupportView& support,
                const TensorView& compact) override {
    return CudaCompact(device_, x, support, compact);
  }
  Error Expand(const TensorView& compact, const SupportView& support,
               const TensorView& x) override {
    return CudaExpand(device_, compact, support, x);
  }
  Error LowRankEncode(const TensorView& x, const CodecSpec& spec, const float* warm_start,
                      uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CudaLowRankEncode(device_, x, spec, warm_start, payload, capacity, bytes);
  }
  Error LowRankDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const TensorView& x) override {
    return CudaLowRankDecode(device_, payload, bytes, spec, x);
  }
  Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) override {
    return CudaFindNonzeros(device_, x, words, count);
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
