#include <cuda_runtime.h>

#include "compress/bytes.h"
#include "compress/cuda/cast.h"
#include "compress/cuda/device_payload.h"
#include "compress/cuda/extremes.cuh"
#include "compress/cuda/half.cuh"
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

template <typename T>
Error SubmitNarrowToHalf(CudaDevice* device, const TensorView& x, int16_t* exponent,
                         uint8_t* body) {
  CudaScratch extremes(device);
  RETURN_ERROR(extremes.Reserve(sizeof(Extremes)));
  const Scopes all = ScopesOf(x, Scope::kTensor, /*group=*/0);
  RETURN_ERROR(SubmitExtremes(device, x, all, Counted::kFinite, extremes.as<Extremes>()));
  return LaunchTiles(device, x.elements(), NarrowToHalf<T>, static_cast<const T*>(x.data),
                     x.elements(), extremes.as<const Extremes>(), exponent,
                     reinterpret_cast<uint16_t*>(body));
}

template <typename T>
Error SubmitWidenHalf(CudaDevice* device, const uint8_t* body, int exponent, const TensorView& x) {
  return LaunchTiles(device, x.elements(), WidenHalf<T>, reinterpret_cast<const uint16_t*>(body),
                     x.elements(), PowerOfTwo(-exponent), static_cast<T*>(x.data));
}

size_t HeaderBytes(DType type) { return CastPayloadBytes(type, 0); }

}  // namespace

Error SubmitCastEncode(CudaDevice* device, const TensorView& x, DType to, int16_t* exponent,
                       uint8_t* body) {
  const bool is_wide = x.dtype == DType::kF32;
  if (to == DType::kF16) {
    return is_wide ? SubmitNarrowToHalf<float>(device, x, exponent, body)
                   : SubmitNarrowToHalf<uint16_t>(device, x, exponent, body);
  }
  return is_wide ? SubmitConvert<float, uint16_t>(device, x.data, x.elements(), body)
                 : SubmitConvert<uint16_t, float>(device, x.data, x.elements(), body);
}

Error SubmitCastDecode(CudaDevice* device, const uint8_t* body, DType from, int exponent,
                       const TensorView& x) {
  const bool is_wide = x.dtype == DType::kF32;
  if (from == DType::kF16) {
    return is_wide ? SubmitWidenHalf<float>(device, body, exponent, x)
                   : SubmitWidenHalf<uint16_t>(device, body, exponent, x);
  }
  return is_wide ? SubmitConvert<uint16_t, float>(device, body, x.elements(), x.data)
                 : SubmitConvert<float, uint16_t>(device, body, x.elements(), x.data);
}

Error CudaCastTo(CudaDevice* device, DType wire, const TensorView& x,
                 const PayloadTarget& payload) {
  const int64_t elements = x.elements();
  *payload.bytes = CastPayloadBytes(wire, elements);
  RETURN_ERROR(CheckCapacity(Name(wire), payload.capacity, *payload.bytes));
  if (elements == 0) {
    return wire == DType::kF16 ? payload.Put(device, 0, int16_t{0}) : Error{};
  }
  if (wire == x.dtype) {
    RETURN_ERROR(payload.SubmitCopy(device, 0, x.data, *payload.bytes));
    return device->Finish();
  }
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(HeaderBytes(wire), *payload.bytes));
  RETURN_ERROR(SubmitCastEncode(device, x, wire, reinterpret_cast<int16_t*>(on_device.bytes()),
                                on_device.body()));
  RETURN_ERROR(payload.SubmitCopy(device, 0, on_device.bytes(), *payload.bytes));
  return device->Finish();
}

Error CudaCastFrom(CudaDevice* device, const PayloadSource& payload, DType wire,
                   const TensorView& x) {
  const int64_t elements = x.elements();
  RETURN_ERROR(CheckPayloadBytes(Name(wire), payload.bytes, CastPayloadBytes(wire, elements)));
  int16_t exponent = 0;
  if (wire == DType::kF16 && wire != x.dtype) {
    RETURN_ERROR(payload.Read(device, 0, &exponent));
    RETURN_ERROR(CheckPreScale(Name(wire), exponent, kLeastPreScale, kMostPreScale));
  }
  if (elements == 0) return Error{};
  if (wire == x.dtype) {
    RETURN_ERROR(payload.SubmitCopy(device, 0, payload.bytes, x.data));
    return device->Finish();
  }
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(HeaderBytes(wire), payload.bytes));
  RETURN_ERROR(payload.SubmitCopy(device, 0, payload.bytes, on_device.bytes()));
  RETURN_ERROR(SubmitCastDecode(device, on_device.body(), wire, exponent, x));
  return device->Finish();
}

Error CudaCastEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                     const KernelContext& /*context*/, const PayloadTarget& payload) {
  return CudaCastTo(device, WireType(spec, x.dtype), x, payload);
}

Error CudaCastDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                     const KernelContext& /*context*/, const TensorView& x) {
  return CudaCastFrom(device, payload, WireType(spec, x.dtype), x);
}

}  // namespace thinwire
