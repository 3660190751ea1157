#include "compress/cuda/kernels.h"

#include <cassert>
#include <memory>
#include <new>

#include "compress/cpu/kernels.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/entropy_frame.h"
#include "compress/cuda/uniform.h"
#include "compress/refusals.h"

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

// Memory that a refused payload needs on the host.
struct HostCopy {
  explicit HostCopy(size_t bytes) : memory(new (std::nothrow) uint8_t[bytes + 1]) {}
  std::unique_ptr<uint8_t[]> memory;
};

// Returns the error for a payload that a decoder refused. The CPU twin reads it again, so that the
// words are the same. Training ends with it, so time does not matter.
Error RefusalOf(CudaDevice* device, const PayloadView& payload, const CodecSpec& spec,
                const KernelContext& context, const TensorView& x) {
  const int64_t n = x.elements();
  const size_t word_bytes = 8 * static_cast<size_t>((n + 63) / 64);
  const HostCopy host_x(n * SizeOf(x.dtype)), words(context.support == nullptr ? 0 : word_bytes);
  if (host_x.memory == nullptr || words.memory == nullptr) {
    return MakeError(kRefused, "%s: malformed payload of %zu bytes", Name(spec.kind),
                     payload.bytes);
  }
  TensorView view = x;
  view.data = host_x.memory.get();
  KernelContext on_host = context;
  SupportView support;
  if (context.support != nullptr) {
    support = *context.support;
    RETURN_ERROR(device->CopyToHost(words.memory.get(), support.words, word_bytes));
    support.words = reinterpret_cast<const uint64_t*>(words.memory.get());
    on_host.support = &support;
  }
  RETURN_ERROR(CpuCodecKernels()->Decode(payload, spec, on_host, view));
  return MakeError(absl::StatusCode::kInternal, "%s: the GPU refuses what the CPU decodes",
                   Name(spec.kind));
}

}  // namespace

Error CudaKernels::EncodeFrame(const CodecSpec& spec, const TensorView& x,
                               const KernelContext& context, const CodesView& codes,
                               const PayloadBuffer& payload, bool* is_frame) {
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

Error CudaKernels::DecodeFrame(const PayloadView& frame, size_t most, const CodecSpec& spec,
                               const KernelContext& context, const TensorView& x) {
  CudaScratch memory(device_);
  size_t n = 0;
  RETURN_ERROR(CudaReadEntropyFrame(device_, {frame.data, frame.bytes}, most, &memory, &n));
  const PayloadView coded = {memory.as<const uint8_t>(), n, /*is_on_device=*/true};
  return CodecOf(spec).decode(device_, coded, spec, context, x);
}

Error CudaKernels::Encode(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                          const PayloadBuffer& payload) {
  const Error error = CodecOf(spec).encode(device_, spec, x, context, payload);
  // Encoders wait for what the host reads, but a header may still be on its way to the device.
  return error.ok() && payload.is_on_device ? device_->Finish() : error;
}

Error CudaKernels::Decode(const PayloadView& payload, const CodecSpec& spec,
                          const KernelContext& context, const TensorView& x) {
  const Error error = CodecOf(spec).decode(device_, payload, spec, context, x);
  const bool is_refused = error.code == static_cast<int>(kRefused) && !payload.is_on_device;
  return is_refused ? RefusalOf(device_, payload, spec, context, x) : error;
}

}  // namespace thinwire
