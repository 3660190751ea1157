#include "compress/cpu/kernels.h"

#include <memory>

#include "compress/cpu/blockwise8.h"
#include "compress/cpu/cast.h"
#include "compress/cpu/combine.h"
#include "compress/cpu/compact.h"
#include "compress/cpu/compare.h"
#include "compress/cpu/entries.h"
#include "compress/cpu/fp8.h"
#include "compress/cpu/low_rank.h"
#include "compress/cpu/nonzeros.h"
#include "compress/cpu/randomk.h"
#include "compress/cpu/rotated_uniform.h"
#include "compress/cpu/threshold.h"
#include "compress/cpu/topk.h"
#include "compress/cpu/uniform.h"

namespace thinwire {
namespace {

class HostCodecKernels final : public CodecKernels {
 public:
  explicit HostCodecKernels(int threads) : threads_(threads) {}

  Error CastEncode(const TensorView& x, DType to, uint8_t* payload, size_t capacity,
                   size_t* bytes) override {
    return CpuCastEncode(x, to, payload, capacity, bytes, threads_);
  }
  Error CastDecode(const uint8_t* payload, size_t bytes, DType from, const TensorView& x) override {
    return CpuCastDecode(payload, bytes, from, x, threads_);
  }
  Error Fp8Encode(const TensorView& x, Fp8Format format, uint8_t* payload, size_t capacity,
                  size_t* bytes) override {
    return CpuFp8Encode(x, format, payload, capacity, bytes, threads_);
  }
  Error Fp8Decode(const uint8_t* payload, size_t bytes, Fp8Format format,
                  const TensorView& x) override {
    return CpuFp8Decode(payload, bytes, format, x, threads_);
  }
  Error Blockwise8Encode(const TensorView& x, uint32_t block, uint8_t* payload, size_t capacity,
                         size_t* bytes) override {
    return CpuBlockwise8Encode(x, block, payload, capacity, bytes, threads_);
  }
  Error Blockwise8Decode(const uint8_t* payload, size_t bytes, uint32_t block,
                         const TensorView& x) override {
    return CpuBlockwise8Decode(payload, bytes, block, x, threads_);
  }
  Error UniformEncode(const TensorView& x, const CodecSpec& spec, uint64_t random_key,
                      uint8_t* payload, size_t capacity, size_t* bytes) override {
    if (spec.rotation == Rotation::kHadamard) {
      return CpuRotatedUniformEncode(x, spec, random_key, payload, capacity, bytes, threads_);
    }
    return CpuUniformEncode(x, spec, random_key, payload, capacity, bytes, threads_);
  }
  Error UniformDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const TensorView& x) override {
    if (spec.rotation == Rotation::kHadamard) {
      return CpuRotatedUniformDecode(payload, bytes, spec, x, threads_);
    }
    return CpuUniformDecode(payload, bytes, spec, x, threads_);
  }
  Error TopKEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                   uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CpuTopKEncode(x, spec, context, payload, capacity, bytes, threads_);
  }
  Error ThresholdEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                        uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CpuThresholdEncode(x, spec, context, payload, capacity, bytes, threads_);
  }
  Error EntriesDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const SparseContext& context, const TensorView& x) override {
    return CpuEntriesDecode(payload, bytes, spec, context, x, threads_);
  }
  Error RandomKEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                      uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CpuRandomKEncode(x, spec, context, payload, capacity, bytes, threads_);
  }
  Error RandomKDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const SparseContext& context, const TensorView& x) override {
    return CpuRandomKDecode(payload, bytes, spec, context, x, threads_);
  }
  Error Compact(const TensorView& x, const SupportView& support,
                const TensorView& compact) override {
    return CpuCompact(x, support, compact, threads_);
  }
  Error Expand(const TensorView& compact, const SupportView& support,
               const TensorView& x) override {
    return CpuExpand(compact, support, x, threads_);
  }
  Error LowRankEncode(const TensorView& x, const CodecSpec& spec, const float* warm_start,
                      uint8_t* payload, size_t capacity, size_t* bytes) override {
    return CpuLowRankEncode(x, spec, warm_start, payload, capacity, bytes);
  }
  Error LowRankDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                      const TensorView& x) override {
    return CpuLowRankDecode(payload, bytes, spec, x);
  }
  Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) override {
    return CpuFindNonzeros(x, words, count, threads_);
  }
  Error CombineRows(const RowSums& sums) override { return CpuCombineRows(sums, threads_); }
  Error Compare(const TensorView& x, const TensorView& y, Sums* sums) override {
    return CpuCompare(x, y, sums, threads_);
  }

 private:
  const int threads_;
};

}  // namespace

CodecKernels* CpuCodecKernels() {
  static CodecKernels* const kernels = new HostCodecKernels(/*threads=*/1);
  return kernels;
}

std::unique_ptr<CodecKernels> NewCpuCodecKernels(int threads) {
  return std::make_unique<HostCodecKernels>(threads);
}

}  // namespace thinwire
