#include <cuda_runtime.h>

#include <type_traits>

#include "compress/bytes.h"
#include "compress/cpu/fp8_line.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/extremes.cuh"
#include "compress/cuda/tile.cuh"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

// Format with `kFractionBits` bits of fraction and an exponent biased by `kBias`.
template <int kFractionBits, int kBias>
struct Fp8 {
  static constexpr int kShift = 23 - kFractionBits;
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
  static constexpr uint32_t kLeastNormal = static_cast<uint32_t>(128 - kBias) << 23;
  static constexpr int kLeastExponent = 1 - kBias - kFractionBits;  // exponent of the last bit
  static constexpr uint32_t kLastBit = static_cast<uint32_t>(127 + kLeastExponent) << 23;
  static constexpr uint32_t kRounder = static_cast<uint32_t>(127 + 23 + kLeastExponent) << 23;

  // Returns the code of x, 0 <= x <= the largest value.
  __device__ static uint32_t Narrow(float x) {
    const uint32_t bits = __float_as_uint(x);
    // Below the normal numbers: adding a float whose last bit is the format's last bit makes the
    // adder round there; the difference of the bits is the code.
    if (bits < kLeastNormal) return __float_as_uint(x + __uint_as_float(kRounder)) - kRounder;
    const uint32_t odd = (bits >> kShift) & 1;
    return (bits - kRebias + (1u << (kShift - 1)) - 1 + odd) >> kShift;
  }

  __device__ static float Widen(uint32_t magnitude) {
    if (magnitude >= 1u << kFractionBits) return __uint_as_float((magnitude << kShift) + kRebias);
    return static_cast<float>(magnitude) * __uint_as_float(kLastBit);
  }
};
using E4M3 = Fp8<3, 7>;
using E5M2 = Fp8<2, 15>;

// Encodes a tile. Every block computes the pre-scale exponent from the extremes; the first one
// stores it.
template <typename Number, typename T>
__global__ void NarrowKernel(const T* x, int64_t n, const Extremes* extremes, Fp8Format format,
                             int16_t* exponent, uint8_t* codes, uint32_t* largest) {
  const uint32_t magnitude = LargestMagnitude(*extremes);
  const bool finite = magnitude < kInfinityBits;
  const int16_t e = finite ? PreScaleFor(__uint_as_float(magnitude), LargestFp8(format)) : 0;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *exponent = e;
    *largest = magnitude;
  }
  if (!finite) return;
  const float scale = PowerOfTwo(e);
  const uint32_t most = LargestFp8Code(format, e);
  VisitTile(blockIdx.x, x, n, [&](int64_t i, const float(&v)[4]) {
    uint32_t word = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t bits = __float_as_uint(v[k]);
      const uint32_t code = Number::Narrow(__uint_as_float(bits & kMagnitudeMask) * scale);
      word |= (((bits >> 24) & 0x80u) | (code < most ? code : most)) << (8 * k);
    }
    if (i < n) *reinterpret_cast<uint32_t*>(codes + i) = word;
  });
}

// Decodes a tile and reports whether a code has no value.
template <typename Number, typename T>
__global__ void WidenKernel(const uint8_t* codes, int64_t n, float scale, uint32_t most, T* x,
                            uint32_t* refused) {
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t i = TileBegin(blockIdx.x) + j * kTileStride;
    if (i >= n) return;
    const uint32_t word = *reinterpret_cast<const uint32_t*>(codes + i);
    float v[4];
    for (int k = 0; k < 4; ++k) {
      const uint32_t code = (word >> (8 * k)) & 0xFFu, magnitude = code & 0x7Fu;
      if (magnitude > most && i + k < n) *refused = 1;
      const float value = Number::Widen(magnitude);
      v[k] = __uint_as_float(__float_as_uint(value) | (code & 0x80u) << 24) * scale;
    }
    StoreVector(v, n - i, x + i);
  }
}

template <typename Number>
Error SubmitNarrow(CudaDevice* device, const TensorView& x, Fp8Format format, int16_t* exponent,
                   uint8_t* codes, uint32_t* largest) {
  CudaScratch extremes(device);
  RETURN_ERROR(extremes.Reserve(sizeof(Extremes)));
  const Scopes all = ScopesOf(x, Scope::kTensor, /*group=*/0);
  RETURN_ERROR(SubmitExtremes(device, x, all, Counted::kAll, extremes.as<Extremes>()));
  return WithTypedData(x, [&](const auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return LaunchTiles(device, x.elements(), NarrowKernel<Number, T>, elements, x.elements(),
                       extremes.as<const Extremes>(), format, exponent, codes, largest);
  });
}

template <typename Number>
Error SubmitWiden(CudaDevice* device, const uint8_t* codes, int exponent, Fp8Format format,
                  const TensorView& x, uint32_t* refused) {
  return WithTypedData(x, [&](auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return LaunchTiles(device, x.elements(), WidenKernel<Number, T>, codes, x.elements(),
                       PowerOfTwo(-exponent), LargestFp8Code(format, exponent), elements, refused);
  });
}

}  // namespace

Error SubmitFp8Encode(CudaDevice* device, const TensorView& x, Fp8Format format, int16_t* exponent,
                      uint8_t* codes, uint32_t* largest) {
  const auto submit = format == Fp8Format::kE4M3 ? SubmitNarrow<E4M3> : SubmitNarrow<E5M2>;
  return submit(device, x, format, exponent, codes, largest);
}

Error SubmitFp8Decode(CudaDevice* device, const uint8_t* codes, int exponent, Fp8Format format,
                      const TensorView& x, uint32_t* refused) {
  const auto submit = format == Fp8Format::kE4M3 ? SubmitWiden<E4M3> : SubmitWiden<E5M2>;
  return submit(device, codes, exponent, format, x, refused);
}

Error CudaFp8Encode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                    const KernelContext& /*context*/, const PayloadTarget& payload) {
  *payload.bytes = Fp8PayloadBytes(x.elements());
  RETURN_ERROR(CheckCapacity("fp8", payload.capacity, *payload.bytes));
  if (x.elements() == 0) return payload.Put(device, 0, int16_t{0});
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(kFp8HeaderBytes, *payload.bytes));
  CudaScratch found(device);
  RETURN_ERROR(found.Reserve(sizeof(uint32_t)));
  RETURN_ERROR(SubmitFp8Encode(device, x, spec.format,
                               reinterpret_cast<int16_t*>(on_device.bytes()), on_device.body(),
                               found.as<uint32_t>()));
  uint32_t largest = 0;
  RETURN_ERROR(payload.SubmitCopy(device, 0, on_device.bytes(), *payload.bytes));
  RETURN_ERROR(device->CopyToHost(&largest, found.as<uint32_t>(), sizeof(largest)));
  return largest < kInfinityBits ? Error{} : CudaNonFiniteError(device, "fp8", x);
}

Error CudaFp8Decode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                    const KernelContext& /*context*/, const TensorView& x) {
  RETURN_ERROR(CheckPayloadBytes("fp8", payload.bytes, Fp8PayloadBytes(x.elements())));
  int16_t exponent = 0;
  RETURN_ERROR(payload.Read(device, 0, &exponent));
  RETURN_ERROR(CheckPreScale("fp8", exponent, LeastPreScale(spec.format), kMostPreScale));
  if (x.elements() == 0) return Error{};
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(kFp8HeaderBytes, payload.bytes));
  CudaScratch found(device);
  RETURN_ERROR(found.ReserveZeros(sizeof(uint32_t)));
  RETURN_ERROR(payload.SubmitCopy(device, 0, payload.bytes, on_device.bytes()));
  RETURN_ERROR(
      SubmitFp8Decode(device, on_device.body(), exponent, spec.format, x, found.as<uint32_t>()));
  uint32_t refused = 0;
  RETURN_ERROR(device->CopyToHost(&refused, found.as<uint32_t>(), sizeof(refused)));
  return refused == 0 ? Error{} : PayloadSource::Refused();
}

}  // namespace thinwire
