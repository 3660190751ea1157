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

}  // namespace

Error CpuKernels::Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                         const PayloadBuffer& payload) {
  return CodecOf(spec).encode(spec, x, context, payload, threads_);
}

Error CpuKernels::Decode(const PayloadView& payload, const CodecSpec& spec,
                         const KernelContext& context, const TensorView& x) {
  return CodecOf(spec).decode(payload, spec, context, x, threads_);
}

CodecKernels* CpuCodecKernels() {
  static CodecKernels* const kernels = new CpuKernels(/*threads=*/1);
  return kernels;
}

std::unique_ptr<CodecKernels> NewCpuCodecKernels(int threads) {
  return std::make_unique<CpuKernels>(threads);
}

}  // namespace thinwire
