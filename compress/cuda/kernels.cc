#include "compress/cuda/kernels.h"

#include <cassert>

#include "compress/cuda/blockwise8.h"
#include "compress/cuda/cast.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/entropy_frame.h"
#include "compress/cuda/fp8.h"
#include "compress/cuda/operations.h"
#include "compress/cuda/topk.h"
#include "compress/cuda/uniform.h"
#include "compress/entropy/kernels.h"

namespace thinwire {
namespace {

struct CudaCodec {
  CudaEncode* encode = nullptr;
  CudaDecode* decode = nullptr;
};

CudaCodec CodecOf(const CodecSpec& spec) {
  switch (spec.kind) {
    case CodecKind::kNone:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
      return {CudaCastEncode, CudaCastDecode};
    case CodecKind::kUniform:
      if (spec.rotation == Rotation::kNone) return {CudaUniformEncode, CudaUniformDecode};
      return {CudaRotatedUniformEncode, CudaRotatedUniformDecode};
    case CodecKind::kTopK:
      return {CudaTopKEncode, CudaEntriesDecode};
    case CodecKind::kThreshold:
      return {CudaThresholdEncode, CudaEntriesDecode};
    case CodecKind::kRandomK:
      return {CudaRandomKEncode, CudaRandomKDecode};
    case CodecKind::kFp8:
      return {CudaFp8Encode, CudaFp8Decode};
    case CodecKind::kBlockwise8:
      return {CudaBlockwise8Encode, CudaBlockwise8Decode};
    case CodecKind::kLowRank:
      return {CudaLowRankEncode, CudaLowRankDecode};
    case CodecKind::kEcsq:
      return {CudaEcsqEncode, CudaEcsqDecode};
    case CodecKind::kPlugin:
      break;
  }
  assert(false);
  return {};
}

// Codecs with the entropy coder behind them. A payload stays on the device and only its frame
// leaves it, unless the frame would not be shorter.
class CudaEntropyKernels final : public EntropyKernels {
 public:
  explicit CudaEntropyKernels(CudaDevice* device) : device_(device) {}

  Error EncodeFrame(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                    const CodesView& codes, const PayloadBuffer& payload, bool* is_frame) override {
    CudaScratch memory(device_);
    RETURN_ERROR(memory.Reserve(payload.capacity + 1));
    auto* const bytes = memory.as<uint8_t>();
    size_t n = 0, length = 0;
    const PayloadBuffer coded = {bytes, payload.capacity, &n, /*is_on_device=*/true};
    RETURN_ERROR(CodecOf(spec).encode(device_, spec, x, context, coded));
    const CodesPlace place = {
        codes.begin, codes.count, {codes.distances, codes.distances + codes.num_distances}};
    RETURN_ERROR(CudaEntropyFrame(device_, bytes, n, place, payload.data, &length));
    *is_frame = length > 0;
    *payload.bytes = *is_frame ? length : n;
    return *is_frame ? Error{} : device_->CopyToHost(payload.data, bytes, n);
  }
  Error DecodeFrame(const PayloadView& frame, size_t most, const CodecSpec& spec,
                    const KernelContext& context, const TensorView& x) override {
    CudaScratch memory(device_);
    size_t n = 0;
    RETURN_ERROR(CudaReadEntropyFrame(device_, {frame.data, frame.bytes}, most, &memory, &n));
    const PayloadView coded = {memory.as<const uint8_t>(), n, /*is_on_device=*/true};
    return CodecOf(spec).decode(device_, coded, spec, context, x);
  }

 private:
  CudaDevice* const device_;
};

class CudaKernels final : public CodecKernels {
 public:
  explicit CudaKernels(CudaDevice* device) : device_(device), entropy_(device) {}

  Error Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
               const PayloadBuffer& payload) override {
    const Error error = CodecOf(spec).encode(device_, spec, x, context, payload);
    // Encoders wait for what the host reads, but a header may still be on its way to the device.
    return error.ok() && payload.is_on_device ? device_->Finish() : error;
  }
  Error Decode(const PayloadView& payload, const CodecSpec& spec, const KernelContext& context,
               const TensorView& x) override {
    return CodecOf(spec).decode(device_, payload, spec, context, x);
  }
  bool codes_on_device() const override { return true; }
  Error Project(const CodecSpec& spec, const TensorView& x, const float* start, float* p,
                float* largest) override {
    return CudaLowRankProject(device_, spec, x, start, p, largest);
  }
  Error Reproject(const CodecSpec& spec, const TensorView& x, float largest, const float* p,
                  float* q) override {
    return CudaLowRankReproject(device_, spec, x, largest, p, q);
  }
  Error CastTo(DType wire, const TensorView& x, const PayloadBuffer& payload) override {
    return CudaCastTo(device_, wire, x, payload);
  }
  Error CastFrom(const PayloadView& payload, DType wire, const TensorView& x) override {
    return CudaCastFrom(device_, payload, wire, x);
  }
  Error Compact(const TensorView& x, const SupportView& support,
                const TensorView& compact) override {
    return CudaCompact(device_, x, support, compact);
  }
  Error Expand(const TensorView& compact, const SupportView& support,
               const TensorView& x) override {
    return CudaExpand(device_, compact, support, x);
  }
  Error FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) override {
    return CudaFindNonzeros(device_, x, words, count);
  }
  Error Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) override {
    return CudaMultiply(device_, x, factor, out);
  }
  EntropyKernels* entropy() override { return &entropy_; }
  Error CombineRows(const RowSums& sums) override { return CudaCombineRows(device_, sums); }
  Error Compare(const TensorView& x, const TensorView& y, Sums* sums) override {
    return CudaCompare(device_, x, y, sums);
  }

 private:
  CudaDevice* const device_;
  CudaEntropyKernels entropy_;
};

}  // namespace

std::unique_ptr<CodecKernels> NewCudaCodecKernels(CudaDevice* device) {
  return std::make_unique<CudaKernels>(device);
}

}  // namespace thinwire
