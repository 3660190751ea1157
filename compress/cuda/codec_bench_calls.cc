#include "compress/cuda/codec_bench_calls.h"

#include <memory>
#include <vector>

#include "compress/cuda/codecs.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/uniform.h"
#include "compress/layout.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

// Payload and findings of a call, in device memory.
struct Memory {
  explicit Memory(CudaDevice* device) : payload(device), found(device) {}

  Error Reserve(size_t header_bytes, size_t bytes) {
    RETURN_ERROR(payload.Reserve(header_bytes, bytes));
    return found.ReserveZeros(64);
  }

  DevicePayload payload;
  CudaScratch found;
};

Error MakeBf16(CudaDevice* device, const TensorView& x, const TensorView& y, DeviceCalls* calls) {
  const auto memory = std::make_shared<Memory>(device);
  RETURN_ERROR(memory->Reserve(0, CastPayloadBytes(DType::kBF16, x.elements())));
  calls->encode = [=] {
    return SubmitCastEncode(device, x, DType::kBF16, /*exponent=*/nullptr, memory->payload.body());
  };
  calls->decode = [=] {
    return SubmitCastDecode(device, memory->payload.body(), DType::kBF16, /*exponent=*/0, y);
  };
  return Error{};
}

Error MakeFp8(CudaDevice* device, Fp8Format format, const TensorView& x, const TensorView& y,
              DeviceCalls* calls) {
  const auto memory = std::make_shared<Memory>(device);
  RETURN_ERROR(memory->Reserve(kFp8HeaderBytes, Fp8PayloadBytes(x.elements())));
  auto* const on_device = reinterpret_cast<int16_t*>(memory->payload.bytes());
  calls->encode = [=] {
    return SubmitFp8Encode(device, x, format, on_device, memory->payload.body(),
                           memory->found.as<uint32_t>());
  };
  RETURN_ERROR(calls->encode());
  int16_t exponent = 0;  // the decoder's host reads it
  RETURN_ERROR(device->CopyToHost(&exponent, on_device, sizeof(exponent)));
  calls->decode = [=] {
    return SubmitFp8Decode(device, memory->payload.body(), exponent, format, y,
                           memory->found.as<uint32_t>());
  };
  return Error{};
}

Error MakeBlockwise8(CudaDevice* device, uint32_t block, const TensorView& x, const TensorView& y,
                     DeviceCalls* calls) {
  const auto memory = std::make_shared<Memory>(device);
  const size_t bytes = Blockwise8PayloadBytes(block, x.elements());
  RETURN_ERROR(memory->Reserve(bytes - x.elements(), bytes));
  calls->encode = [=] {
    return SubmitBlockwise8Encode(device, x, block, memory->payload.bytes(),
                                  memory->found.as<uint32_t>());
  };
  calls->decode = [=] {
    return SubmitBlockwise8Decode(device, memory->payload.bytes(), block, y,
                                  memory->found.as<uint32_t>());
  };
  return calls->encode();
}

Error MakeUniform(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                  const TensorView& y, DeviceCalls* calls) {
  const auto memory = std::make_shared<Memory>(device);
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(
      memory->Reserve(UniformHeaderBytes(spec, scopes), UniformMaxPayloadBytes(spec, scopes)));
  static_assert(sizeof(UniformEncoded) <= 64);
  calls->encode = [=] {
    return SubmitUniformEncode(device, x, spec, /*random_key=*/1, memory->payload.bytes(),
                               memory->found.as<UniformEncoded>());
  };
  calls->decode = [=] {
    return SubmitUniformDecode(device, memory->payload.bytes(), spec, y,
                               memory->found.as<uint32_t>());
  };
  return calls->encode();
}

using SubmitEntries = Error (*)(CudaDevice*, const TensorView&, const CodecSpec&,
                                const KernelContext&, EntriesOnDevice*);

// Makes calls for entries. They take the payload's memory from the pool each time, as in training.
Error MakeEntries(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                  const TensorView& y, SubmitEntries submit, DeviceCalls* calls) {
  calls->encode = [=] {
    EntriesOnDevice payload(device);
    return submit(device, x, spec, KernelContext{}, &payload);
  };
  EntriesOnDevice encoded(device);
  RETURN_ERROR(submit(device, x, spec, KernelContext{}, &encoded));
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  std::vector<uint8_t> payload(EntriesMaxPayloadBytes(spec, scopes));
  size_t bytes = 0;
  RETURN_ERROR(encoded.CopyTo(PayloadBuffer{payload.data(), payload.size(), &bytes}));

  const auto decoding = std::make_shared<EntriesToDecode>(device);
  const auto fault = std::make_shared<CudaScratch>(device);
  RETURN_ERROR(fault->Reserve(sizeof(uint32_t)));
  RETURN_ERROR(decoding->SubmitCopy(PayloadView{payload.data(), bytes}, spec, KernelContext{}, y));
  RETURN_ERROR(device->Finish());
  calls->decode = [=] { return decoding->Submit(y, fault->as<uint32_t>()); };
  return Error{};
}

}  // namespace

Error MakeDeviceCalls(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                      const TensorView& y, DeviceCalls* calls) {
  *calls = DeviceCalls();
  if (spec.lossless != Lossless::kNone) return Error{};
  switch (spec.kind) {
    case CodecKind::kBf16:
      return MakeBf16(device, x, y, calls);
    case CodecKind::kFp8:
      return MakeFp8(device, spec.format, x, y, calls);
    case CodecKind::kBlockwise8:
      return MakeBlockwise8(device, spec.block, x, y, calls);
    case CodecKind::kUniform:
      return MakeUniform(device, spec, x, y, calls);
    case CodecKind::kTopK:
      return MakeEntries(device, spec, x, y, &SubmitTopKEncode, calls);
    case CodecKind::kThreshold:
      return MakeEntries(device, spec, x, y, &SubmitThresholdEncode, calls);
    default:
      return Error{};
  }
}

}  // namespace thinwire
