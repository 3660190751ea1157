#include <cuda_runtime.h>

#include <array>

#include "compress/cpu/ecsq_header.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/ecsq_codes.cuh"
#include "compress/cuda/scope_cursor.cuh"
#include "compress/cuda/tile.cuh"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

struct Means {
  float of[kMeans] = {};

  // Returns the steps of a byte's code: its magnitude, with the mean of that if it has one, and
  // sign.
  __device__ float StepsOf(uint32_t zigzag) const {
    const uint32_t magnitude = (zigzag + 1) / 2;
    float mean = 0;
#pragma unroll
    for (int m = 0; m < kMeans; ++m) {
      if (magnitude == static_cast<uint32_t>(m + 1)) mean = of[m];
    }
    const float above = static_cast<float>(magnitude) + mean;
    return zigzag % 2 != 0 ? -above : above;
  }
};

// Findings of a decoder.
struct Met {
  uint32_t fault, escapes;  // whether there is a fault, or an escape
};

// Returns whether one of four bytes is kEscape. A byte of `others` is then 0, and subtracting 1
// from it borrows into its upper bit, which was not set.
__device__ inline bool HasEscape(uint32_t word) {
  static_assert(kEscape == 0xFF, "its complement is 0");
  const uint32_t others = ~word;
  return ((others - 0x01010101u) & word & 0x80808080u) != 0;
}

// Decodes a tile as if there were no escapes; PatchKernel overwrites the values of those. A block
// computes what each byte stands for once.
template <typename T, bool kDithers>
__global__ void DecodeKernel(const uint8_t* bytes, int64_t n, const uint16_t* steps,
                             ContiguousScopes scopes, uint64_t key, Means means, T* x, Met* met) {
  static_assert(kTileThreads == kEscape + 1, "a thread for each byte");
  __shared__ float steps_of[kTileThreads];
  steps_of[threadIdx.x] = means.StepsOf(threadIdx.x);
  __syncthreads();
  ScopeCursor cursor(scopes, TileBegin(blockIdx.x));
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t i = TileBegin(blockIdx.x) + j * kTileStride;
    if (i >= n) return;
    const Numbers numbers(kDithers, key, i);
    const int left = LeftOf(n, i);
    // Behind the last byte there is room, whose bytes may look like escapes.
    const uint32_t word = *reinterpret_cast<const uint32_t*>(bytes + i);
    if (HasEscape(left == 4 ? word : word & ~(UINT32_MAX << (8 * left)))) met->escapes = 1;
    float v[4] = {};
    const auto step_of = [steps](int64_t scope) { return FromBFloat(steps[scope]); };
    cursor.ForEach(left, step_of, [&](int k, float step) {
      const float y = steps_of[(word >> (8 * k)) & 0xFFu];
      v[k] = ValueOfSteps(kDithers ? y - Dither(numbers.of[k]) : y, step);
    });
    cursor.Advance();
    StoreVector(v, left, x + i);
  }
}

// Reports a fault if a step is neither zero nor a normal number.
__global__ void CheckStepsKernel(const uint16_t* steps, int64_t count, Met* met) {
  const int64_t scope = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (scope < count && !IsStep(steps[scope])) met->fault = 1;
}

// Writes the values of codes that have no byte.
template <typename T>
__global__ void PatchKernel(const int64_t* where, const int32_t* codes, int64_t count,
                            const uint16_t* steps, int64_t elements, bool dithers, uint64_t key,
                            T* x, Met* met) {
  const int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= count) return;
  if (ZigZag(codes[j]) < kEscape) met->fault = 1;
  const int64_t i = where[j];
  const Numbers numbers(dithers, key, i);
  const float code = static_cast<float>(codes[j]);
  const float v[4] = {ValueOfSteps(dithers ? code - Dither(numbers.At(i % 4)) : code,
                                   FromBFloat(steps[i / elements]))};
  StoreVector(v, 1, x + i);
}

// Decoder of a payload into a tensor of one element type.
template <typename T>
class Decoder {
 public:
  Decoder(CudaDevice* device, const CodecSpec& spec, const TensorView& x)
      : device_(device),
        spec_(spec),
        scopes_(ScopesOf(x, spec.scope, spec.group)),
        x_(static_cast<T*>(x.data)) {}

  // Decodes a payload that has a header and a byte for each element. Waits.
  Error Decode(const PayloadSource& payload) {
    const size_t header_bytes = EcsqHeaderBytes(spec_, scopes_);
    RETURN_ERROR(ReadHeader(payload.behind(2 * scopes_.count)));
    RETURN_ERROR(steps_.Reserve(2 * scopes_.count));
    RETURN_ERROR(bytes_.Reserve(scopes_.total + 4));
    RETURN_ERROR(met_.ReserveZeros(sizeof(Met)));
    RETURN_ERROR(payload.SubmitCopy(device_, 0, 2 * scopes_.count, steps_.as<void>()));
    RETURN_ERROR(payload.SubmitCopy(device_, header_bytes, scopes_.total, bytes_.as<void>()));
    RETURN_ERROR(Launch(device_, BlocksFor(scopes_.count, kThreads), dim3(kThreads),
                        CheckStepsKernel, steps(), scopes_.count, met_.as<Met>()));
    RETURN_ERROR(LaunchTiles(
        device_, scopes_.total, dithers() ? DecodeKernel<T, true> : DecodeKernel<T, false>, bytes(),
        scopes_.total, steps(), ContiguousScopesOf(scopes_), key_, means_, x_, met_.as<Met>()));
    Met met;
    RETURN_ERROR(device_->CopyToHost(&met, met_.as<const void>(), sizeof(met)));
    const size_t least = header_bytes + static_cast<size_t>(scopes_.total);
    if (met.fault != 0) return PayloadSource::Refused();
    if (met.escapes == 0) return CheckPayloadBytes("ecsq", payload.bytes, least);
    Escapes escapes(device_);
    RETURN_ERROR(escapes.Count(bytes(), scopes_.total));
    RETURN_ERROR(CheckPayloadBytes("ecsq", payload.bytes, least + 4 * escapes.count()));
    RETURN_ERROR(SubmitEscapes(payload.behind(least), &escapes));
    RETURN_ERROR(device_->CopyToHost(&met, met_.as<const void>(), sizeof(met)));
    return met.fault == 0 ? Error{} : PayloadSource::Refused();
  }

 private:
  bool dithers() const { return spec_.rounding == Rounding::kDither; }
  const uint16_t* steps() const { return steps_.as<const uint16_t>(); }
  const uint8_t* bytes() const { return bytes_.as<const uint8_t>(); }

  Error ReadHeader(const PayloadSource& behind_steps) {
    if (dithers()) return behind_steps.Read(device_, 0, &key_);
    if (!spec_.has_means()) return Error{};
    std::array<int8_t, kMeans> means;
    RETURN_ERROR(behind_steps.Read(device_, 0, &means));
    for (int m = 0; m < kMeans; ++m) means_.of[m] = static_cast<float>(means[m]) * kMeanUnit;
    return Error{};
  }

  Error SubmitEscapes(const PayloadSource& behind_bytes, Escapes* escapes) {
    const int64_t count = escapes->count();
    if (count == 0) return Error{};
    RETURN_ERROR(escapes->SubmitPlaces(bytes(), scopes_.total));
    RETURN_ERROR(codes_.Reserve(4 * count));
    RETURN_ERROR(behind_bytes.SubmitCopy(device_, 0, 4 * count, codes_.as<void>()));
    return Launch(device_, BlocksFor(count, kThreads), dim3(kThreads), PatchKernel<T>,
                  escapes->places(), codes_.as<const int32_t>(), count, steps(), scopes_.elements,
                  dithers(), key_, x_, met_.as<Met>());
  }

  CudaDevice* const device_;
  const CodecSpec& spec_;
  const Scopes scopes_;
  T* const x_;
  uint64_t key_ = 0;
  Means means_;
  CudaScratch steps_{device_}, bytes_{device_}, codes_{device_}, met_{device_};
};

}  // namespace

Error CudaEcsqDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                     const KernelContext& /*context*/, const TensorView& x) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  const size_t least = EcsqHeaderBytes(spec, scopes) + static_cast<size_t>(scopes.total);
  if (payload.bytes < least || scopes.count == 0) {
    return CheckPayloadBytes("ecsq", payload.bytes, least);
  }
  return x.dtype == DType::kF32 ? Decoder<float>(device, spec, x).Decode(payload)
                                : Decoder<uint16_t>(device, spec, x).Decode(payload);
}

}  // namespace thinwire
