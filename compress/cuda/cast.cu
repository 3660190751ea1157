#include <cuda_runtime.h>

#include <type_traits>

#include "compress/bytes.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/extremes.cuh"
#include "compress/cuda/half.cuh"
#include "compress/cuda/kernels.h"
#include "compress/cuda/tile.cuh"
#include "compress/half.h"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

// Converts between fp32 and bf16.
template <typename From, typename To>
__global__ void ConvertKernel(const From* from, int64_t n, To* to) {
  VisitTile(blockIdx.x, from, n,
            [&](int64_t i, const float(&v)[4]) { StoreVector(v, n - i, to + i); });
}

// Stores four halves at an aligned address, or the first `left` of them.
__device__ void StoreHalves(const uint16_t (&h)[4], int64_t left, uint16_t* to) {
  if (left >= 4) {
    uint2 words;
    words.x = h[0] | static_cast<uint32_t>(h[1]) << 16;
    words.y = h[2] | static_cast<uint32_t>(h[3]) << 16;
    *reinterpret_cast<uint2*>(to) = words;
    return;
  }
  for (int k = 0; k < 4; ++k) {
    if (k < left) to[k] = h[k];
  }
}

__device__ void LoadHalves(const uint16_t* from, int64_t left, uint16_t (&h)[4]) {
  if (left >= 4) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    h[0] = words.x & 0xFFFFu, h[1] = words.x >> 16;
    h[2] = words.y & 0xFFFFu, h[3] = words.y >> 16;
    return;
  }
  for (int k = 0; k < 4; ++k) h[k] = k < left ? from[k] : 0;
}

// Converts to fp16. Every block computes the pre-scale exponent from the extremes; the first one
// stores it.
template <typename T>
__global__ void NarrowToHalf(const T* x, int64_t n, const Extremes* of_finite, int16_t* exponent,
                             uint16_t* to) {
  const int16_t e = PreScaleFor(__uint_as_float(LargestMagnitude(*of_finite)));
  if (blockIdx.x == 0 && threadIdx.x == 0) *exponent = e;
  const float scale = PowerOfTwo(e);
  VisitTile(blockIdx.x, x, n, [&](int64_t i, const float(&v)[4]) {
    uint16_t h[4];
    for (int k = 0; k < 4; ++k) h[k] = ScaledHalf(v[k], scale);
    StoreHalves(h, n - i, to + i);
  });
}

template <typename T>
__global__ void WidenHalf(const uint16_t* from, int64_t n, float scale, T* x) {
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t i = TileBegin(blockIdx.x) + j * kTileStride;
    uint16_t h[4];
    LoadHalves(from + i, n - i, h);
    float v[4];
    for (int k = 0; k < 4; ++k) v[k] = ScaledOfHalf(h[k], scale);
    StoreVector(v, n - i, x + i);
  }
}

template <typename From, typename To>
Error SubmitConvert(CudaDevice* device, const void* from, int64_t n, void* to) {
  return LaunchTiles(device, n, ConvertKernel<From, To>, static_cast<const From*>(from), n,
                     static_cast<To*>(to));
}

size_t HeaderBytes(DType type) { return CastPayloadBytes(type, 0); }

}  // namespace

Error SubmitCastEncode(CudaDevice* device, const TensorView& x, DType to, int16_t* exponent,
                       uint8_t* body) {
  const int64_t n = x.elements();
  if (to != DType::kF16) {
    return x.dtype == DType::kF32 ? SubmitConvert<float, uint16_t>(device, x.data, n, body)
                                  : SubmitConvert<uint16_t, float>(device, x.data, n, body);
  }
  CudaScratch extremes(device);
  RETURN_ERROR(extremes.Reserve(sizeof(Extremes)));
  const Scopes all = ScopesOf(x, Scope::kTensor, /*group=*/0);
  RETURN_ERROR(SubmitExtremes(device, x, all, Counted::kFinite, extremes.as<Extremes>()));
  return WithTypedData(x, [&](const auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return LaunchTiles(device, n, NarrowToHalf<T>, elements, n, extremes.as<const Extremes>(),
                       exponent, reinterpret_cast<uint16_t*>(body));
  });
}

Error SubmitCastDecode(CudaDevice* device, const uint8_t* body, DType from, int exponent,
                       const TensorView& x) {
  const int64_t n = x.elements();
  if (from != DType::kF16) {
    return x.dtype == DType::kF32 ? SubmitConvert<uint16_t, float>(device, body, n, x.data)
                                  : SubmitConvert<float, uint16_t>(device, body, n, x.data);
  }
  return WithTypedData(x, [&](auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return LaunchTiles(device, n, WidenHalf<T>, reinterpret_cast<const uint16_t*>(body), n,
                       PowerOfTwo(-exponent), elements);
  });
}

Error CudaKernels::CastTo(DType wire, const TensorView& x, const PayloadBuffer& buffer) {
  const PayloadTarget payload = buffer;
  const int64_t elements = x.elements();
  *payload.bytes = CastPayloadBytes(wire, elements);
  RETURN_ERROR(CheckCapacity(Name(wire), payload.capacity, *payload.bytes));
  if (elements == 0) {
    return wire == DType::kF16 ? payload.Put(device_, 0, int16_t{0}) : Error{};
  }
  if (wire == x.dtype) {
    RETURN_ERROR(payload.SubmitCopy(device_, 0, x.data, *payload.bytes));
    return device_->Finish();
  }
  DevicePayload on_device(device_);
  RETURN_ERROR(on_device.Reserve(HeaderBytes(wire), *payload.bytes));
  RETURN_ERROR(SubmitCastEncode(device_, x, wire, reinterpret_cast<int16_t*>(on_device.bytes()),
                                on_device.body()));
  RETURN_ERROR(payload.SubmitCopy(device_, 0, on_device.bytes(), *payload.bytes));
  return device_->Finish();
}

Error CudaKernels::CastFrom(const PayloadView& view, DType wire, const TensorView& x) {
  const PayloadSource payload = view;
  const int64_t elements = x.elements();
  RETURN_ERROR(CheckPayloadBytes(Name(wire), payload.bytes, CastPayloadBytes(wire, elements)));
  int16_t exponent = 0;
  if (wire == DType::kF16 && wire != x.dtype) {
    RETURN_ERROR(payload.Read(device_, 0, &exponent));
    RETURN_ERROR(CheckPreScale(Name(wire), exponent, kLeastPreScale, kMostPreScale));
  }
  if (elements == 0) return Error{};
  if (wire == x.dtype) {
    RETURN_ERROR(payload.SubmitCopy(device_, 0, payload.bytes, x.data));
    return device_->Finish();
  }
  DevicePayload on_device(device_);
  RETURN_ERROR(on_device.Reserve(HeaderBytes(wire), payload.bytes));
  RETURN_ERROR(payload.SubmitCopy(device_, 0, payload.bytes, on_device.bytes()));
  RETURN_ERROR(SubmitCastDecode(device_, on_device.body(), wire, exponent, x));
  return device_->Finish();
}

Error CudaCastEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                     const KernelContext& /*context*/, const PayloadTarget& payload) {
  return CudaKernels(device).CastTo(WireType(spec, x.dtype), x, payload);
}

Error CudaCastDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                     const KernelContext& /*context*/, const TensorView& x) {
  return CudaKernels(device).CastFrom(payload, WireType(spec, x.dtype), x);
}

}  // namespace thinwire
