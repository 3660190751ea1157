#include "compress/cpu/kernels.h"

#include <cassert>
#include <memory>

#include "compress/cpu/codecs.h"
#include "compress/cpu/entries.h"
#include "compress/cpu/operations.h"

namespace thinwire {
namespace {

struct CpuCodec {
  CpuEncode* encode = nullptr;
  CpuDecode* decode = nullptr;
};

CpuCodec CodecOf(const CodecSpec& spec) {
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return {CpuCastEncode, CpuCastDecode};
    case CodecKind::kUniform:
      if (spec.rotation == Rotation::kNone) return {CpuUniformEncode, CpuUniformDecode};
      return {CpuRotatedUniformEncode, CpuRotatedUniformDecode};
    case CodecKind::kTopK:
      return {CpuTopKEncode, CpuEntriesDecode};
    case CodecKind::kThreshold:
      return {CpuThresholdEncode, CpuEntriesDecode};
    case CodecKind::kRandomK:
      return {CpuRandomKEncode, CpuRandomKDecode};
    case CodecKind::kFp8:
      return {CpuFp8Encode, CpuFp8Decode};
    case CodecKind::kBlockwise8:
      return {CpuBlockwise8Encode, CpuBlockwise8Decode};
    case CodecKind::kLowRank:
      return {CpuLowRankEncode, CpuLowRankDecode};
    case CodecKind::kEcsq:
      return {CpuEcsqEncode, CpuEcsqDecode};
    case CodecKind::kPlugin:
      break;
  }
  assert(false);
  return {};
}

class HostCodecKernels final : public CodecKernels {
 public:
  explicit HostCodecKernels(int threads) : threads_(threads) {}

  Error Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
               const PayloadBuffer& payload) override {
    return CodecOf(spec).encode(spec, x, context, payload, threads_);
  }
  Error Decode(const PayloadView& payload, const CodecSpec& spec, const KernelContext& context,
               const TensorView& x) override {
    return CodecOf(spec).decode(payload, spec, context, x, threads_);
  }
  Error Project(const CodecSpec& spec, const TensorView& x, const float* start, float* p,
                float* largest) override {
    return CpuLowRankProject(spec, x, start, p, largest);
  }
  Error Reproject(const CodecSpec& spec, const TensorView& x, float largest, const float* p,
                  float* q) override {
    return CpuLowRankReproject(spec, x, largest, p, q);
  }
  Error CastTo(DType wire, const TensorView& x, const PayloadBuffer& payload) override {
    return CpuCastTo(wire, x, payload, threads_);
  }
  Error CastFrom(const PayloadView& payload, DType wire, const TensorView& x) override {
    return CpuCastFrom(payload, wire, x, threads_);
  }
  Error Compact(const TensorView& x, const SupportView& support,
                const TensorView& compact) override {
    return CpuCompact(x, support, compact, threads_);
  }
  Error Expand(const TensorView& compact, const SupportView& support,
               const TensorView& x) override {
    return CpuExpand(compact, support, x, threads_);
  }
  Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) override {
    return CpuFindNonzeros(x, words, count, threads_);
  }
  Error Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) override {
    return CpuMultiply(x, factor, out, threads_);
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
