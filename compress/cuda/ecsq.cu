#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compress/cpu/bytes.h"
#include "compress/cpu/ecsq_header.h"
#include "compress/cpu/square_order.h"
#include "compress/cuda/ecsq.h"
#include "compress/cuda/large_bytes.h"
#include "compress/cuda/nonfinite.h"
#include "compress/cuda/philox.cuh"
#include "compress/cuda/quotient.cuh"
#include "compress/cuda/scope_cursor.cuh"
#include "compress/cuda/sum_in_order.cuh"
#include "compress/cuda/tile.cuh"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kLanes = static_cast<int>(kSquareLanes);
constexpr int kThreads = 256;

// What an encoder finds besides the bytes.
struct Found {
  unsigned long long count[kMeans], fractions[kMeans];  // of the magnitudes 1 to kMeans; may wrap
  uint32_t nonfinite;
  uint32_t escapes;  // whether there are any
};

// How the elements lie in scopes, and these in stretches of kSquareStretch.
struct ScopeStretches {
  int64_t total, elements, stretches;
  __device__ int64_t ElementsOf(int64_t scope) const {
    return min(elements, total - scope * elements);
  }
};

// A thread per lane of a stretch, as for threshold.
template <typename T>
__global__ void SumStretchesKernel(const T* x, ScopeStretches scopes, int64_t all, double* sums) {
  const int lane = threadIdx.x % kLanes;
  const int64_t index = int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kLanes;
  const int64_t scope = index / scopes.stretches;
  const int64_t within = index % scopes.stretches * kSquareStretch;
  double of_lane = 0;
  if (index < all) {
    const int64_t end = min(within + kSquareStretch, scopes.ElementsOf(scope));
    for (int64_t i = within + lane; i < end; i += kLanes) {
      const double value = Load(x + scope * scopes.elements + i);
      of_lane += value * value;
    }
  }
  double sum = 0;
  for (int j = 0; j < kLanes; ++j) sum += __shfl_sync(kWholeWarp, of_lane, j, kLanes);
  if (lane == 0 && index < all) sums[index] = sum;
}

// A block per scope.
__global__ void StepKernel(const double* sums, ScopeStretches scopes, double step, uint16_t* steps,
                           Found* found) {
  const int64_t scope = blockIdx.x;
  const double sum = SumInOrder(sums + scope * scopes.stretches, scopes.stretches);
  if (threadIdx.x != 0) return;
  const bool is_finite = sum <= DBL_MAX;
  if (!is_finite) found->nonfinite = 1;
  steps[scope] = is_finite ? StepBits(sum, scopes.ElementsOf(scope), step) : 0;
}

// rintf as an integer. Below 2^22 in magnitude the sum with 1.5 times 2^23 has no bits behind the
// point: it is rounded to the nearest whole number, which its lower bits are then, and the bits of
// the other number less.
__device__ inline int32_t Rounded(float y) {
  constexpr float kShift = 0x1.8p23f;
  if (!(fabsf(y) < 0x1p22f)) return static_cast<int32_t>(rintf(y));
  return __float_as_int(y + kShift) - __float_as_int(kShift);
}

struct ToNearest {
  __device__ int32_t operator()(float y, uint32_t) const { return Rounded(y); }
};
struct DownTo {
  __device__ int32_t operator()(float y, uint32_t) const {
    return static_cast<int32_t>(copysignf(floorf(fabsf(y) + 1.0f / 3), y));
  }
};
struct ToNearestNonzero {
  __device__ int32_t operator()(float y, uint32_t) const {
    const float magnitude = fmaxf(fabsf(y), y == 0 ? 0.0f : 1.0f);
    return static_cast<int32_t>(rintf(copysignf(magnitude, y)));
  }
};
struct ByChance {
  __device__ int32_t operator()(float y, uint32_t random) const {
    const float whole = floorf(y), chance = static_cast<float>(random >> 8) * 0x1p-24f;
    return static_cast<int32_t>(chance < y - whole ? whole + 1.0f : whole);
  }
};
struct WithDither {
  __device__ int32_t operator()(float y, uint32_t random) const {
    return Rounded(y + Dither(random));
  }
};

// The numbers of the four elements from i on.
struct Numbers {
  uint32_t of[4] = {};
  __device__ Numbers(bool are_needed, uint64_t key, int64_t i) {
    if (are_needed) PhiloxNumbers(key, static_cast<uint64_t>(i) / 4, of);
  }
};

// Counts and sums of a thread, then of a block, for Found. Nothing here is indexed by a number that
// is known at run time only: that would stand in local memory.
struct CellSums {
  static_assert(kMeans == 4 && 4 * kTileVectors < 256, "a thread's counts are bytes of a word");
  uint32_t counts = 0;
  int32_t fractions[kMeans] = {};  // of at most one apiece: no sum is out of bounds

  __device__ void Add(float y, int32_t code) {
    const int32_t magnitude = abs(code);
    const float above = fabsf(y) - static_cast<float>(magnitude);
    const bool is_counted = magnitude >= 1 && magnitude <= kMeans;
    const int32_t fraction = is_counted ? Rounded(above * kFractionUnit) : 0;
    if (is_counted) counts += 1u << (8 * (magnitude - 1));
#pragma unroll
    for (int m = 0; m < kMeans; ++m) fractions[m] += magnitude == m + 1 ? fraction : 0;
  }
  __device__ void AddTo(Found* found) const {
#pragma unroll
    for (int m = 0; m < kMeans; ++m) {
      const uint32_t count = BlockReduce<Sum>(counts >> (8 * m) & 0xFFu);
      const long long sums = BlockReduce<Sum>(static_cast<long long>(fractions[m]));
      if (threadIdx.x != 0 || count == 0) continue;
      atomicAdd(&found->count[m], static_cast<unsigned long long>(count));
      atomicAdd(&found->fractions[m], static_cast<unsigned long long>(sums));
    }
  }
};

template <typename T, typename Round>
__global__ void EncodeKernel(const T* x, int64_t n, const uint16_t* steps, ContiguousScopes scopes,
                             bool has_chance, uint64_t key, bool has_means, Round round,
                             uint8_t* bytes, Found* found) {
  ScopeCursor cursor(scopes, TileBegin(blockIdx.x));
  CellSums cells;
  bool escapes = false;
  VisitTile(blockIdx.x, x, n, [&](int64_t i, const float(&v)[4]) {
    const Numbers numbers(has_chance, key, i);
    const int left = LeftOf(n, i);
    uint32_t word = 0;
    const auto step_of = [steps](int64_t scope) { return Divisor(FromBFloat(steps[scope])); };
    cursor.ForEach(left, step_of, [&](int k, const Divisor& step) {
      if (k >= left || step.value() == 0) return;
      const float y = step.Divide<1>(v[k]);
      const int32_t code = round(y, numbers.of[k]);
      if (has_means) cells.Add(y, code);
      const uint32_t zigzag = ZigZag(code);
      escapes = escapes || zigzag >= kEscape;
      word |= min(zigzag, uint32_t{kEscape}) << (8 * k);
    });
    cursor.Advance();
    if (i < n) *reinterpret_cast<uint32_t*>(bytes + i) = word;
  });
  if (escapes) found->escapes = 1;
  if (has_means) cells.AddTo(found);
}

// The codes of some elements once more, that have no byte.
template <typename T, typename Round>
__global__ void EscapesKernel(const T* x, const int64_t* where, int64_t count,
                              const uint16_t* steps, int64_t elements, uint64_t key, Round round,
                              int32_t* codes) {
  const int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const int64_t i = where[j];
  const Numbers numbers(true, key, i);
  codes[j] = round(Load(x + i) / FromBFloat(steps[i / elements]), numbers.of[i % 4]);
}

struct Means {
  float of[kMeans] = {};

  // 0 of magnitudes that have none.
  __device__ float Of(uint32_t magnitude) const {
    float mean = 0;
#pragma unroll
    for (int m = 0; m < kMeans; ++m) {
      if (magnitude == static_cast<uint32_t>(m + 1)) mean = of[m];
    }
    return mean;
  }
};

// A decoder's findings.
struct Met {
  uint32_t fault, escapes;  // whether there is one; whether there are any
};

template <typename T>
__global__ void DecodeKernel(const uint8_t* bytes, int64_t n, const uint16_t* steps,
                             ContiguousScopes scopes, bool dithers, uint64_t key, Means means, T* x,
                             Met* met) {
  ScopeCursor cursor(scopes, TileBegin(blockIdx.x));
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t i = TileBegin(blockIdx.x) + j * kTileStride;
    if (i >= n) return;
    const Numbers numbers(dithers, key, i);
    const int left = LeftOf(n, i);
    const uint32_t word = *reinterpret_cast<const uint32_t*>(bytes + i);
    float v[4] = {};
    const auto step_of = [steps](int64_t scope) { return FromBFloat(steps[scope]); };
    cursor.ForEach(left, step_of, [&](int k, float step) {
      if (k >= left) return;
      const uint32_t zigzag = (word >> (8 * k)) & 0xFFu;
      if (zigzag == kEscape) met->escapes = 1;
      const uint32_t magnitude = (zigzag + 1) / 2;
      const float above = static_cast<float>(magnitude) + means.Of(magnitude);
      const float y = zigzag % 2 != 0 ? -above : above;
      v[k] = ValueOfSteps(dithers ? y - Dither(numbers.of[k]) : y, step);
    });
    cursor.Advance();
    StoreVector(v, left, x + i);
  }
}

__global__ void CheckStepsKernel(const uint16_t* steps, int64_t count, Met* met) {
  const int64_t scope = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (scope < count && !IsStep(steps[scope])) met->fault = 1;
}

// The values of codes that have no byte.
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
  const float v[4] = {ValueOfSteps(dithers ? code - Dither(numbers.of[i % 4]) : code,
                                   FromBFloat(steps[i / elements]))};
  StoreVector(v, 1, x + i);
}

// The bytes of codes that have none, in device memory.
class Escapes {
 public:
  explicit Escapes(CudaDevice* device) : device_(device), offsets_(device), places_(device) {}

  // Of n codes. Waits, also for what was submitted before.
  Error Count(const uint8_t* bytes, int64_t n) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    RETURN_ERROR(offsets_.Reserve(LargeOffsetsBytes(n)));
    auto* const offsets = offsets_.as<uint64_t>();
    RETURN_ERROR(SubmitLargeOffsets(stream, bytes, n, kEscape, offsets));
    uint64_t count = 0;
    RETURN_ERROR(device_->CopyToHost(&count, offsets + NumLargeTiles(n), sizeof(count)));
    count_ = static_cast<int64_t>(count);
    return Error{};
  }
  int64_t count() const { return count_; }

  // Finds their places, of the same codes.
  Error SubmitPlaces(const uint8_t* bytes, int64_t n) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    RETURN_ERROR(places_.Reserve(sizeof(int64_t) * count_));
    return SubmitLargeList(stream, bytes, n, kEscape, offsets_.as<const uint64_t>(),
                           /*values=*/nullptr, places_.as<int64_t>());
  }
  const int64_t* places() const { return places_.as<const int64_t>(); }

 private:
  CudaDevice* const device_;
  CudaScratch offsets_, places_;
  int64_t count_ = 0;
};

template <typename T>
Error SubmitSteps(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                  const Scopes& scopes, CudaScratch* sums, uint16_t* steps, Found* found) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const ScopeStretches stretches = {scopes.total, scopes.elements,
                                    (scopes.elements + kSquareStretch - 1) / kSquareStretch};
  const int64_t all = stretches.stretches * scopes.count;
  RETURN_ERROR(sums->Reserve(all * sizeof(double)));
  RETURN_ERROR(Launch(stream, BlocksFor(all, kThreads / kLanes), dim3(kThreads),
                      SumStretchesKernel<T>, static_cast<const T*>(x.data), stretches, all,
                      sums->as<double>()));
  return Launch(stream, dim3(static_cast<unsigned>(scopes.count)), dim3(kSumThreads), StepKernel,
                sums->as<double>(), stretches, spec.step, steps, found);
}

// Codes, bytes and escapes of one element type and rounding.
template <typename T, typename Round>
class Encoder {
 public:
  Encoder(CudaDevice* device, const TensorView& x, const CodecSpec& spec, uint64_t key)
      : device_(device),
        spec_(spec),
        scopes_(ScopesOf(x, spec.scope, spec.group)),
        key_(key),
        x_(x) {}

  Error Encode(const PayloadTarget& payload) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    const size_t header_bytes = EcsqHeaderBytes(spec_, scopes_);
    CudaScratch steps(device_), sums(device_), found_memory(device_), bytes(device_);
    RETURN_ERROR(steps.Reserve(2 * scopes_.count));
    RETURN_ERROR(found_memory.Reserve(sizeof(Found)));
    RETURN_ERROR(bytes.Reserve(scopes_.total + 4));
    auto* const on_device = found_memory.as<Found>();
    CUDA_RETURN_IF_ERROR(cudaMemsetAsync(on_device, 0, sizeof(Found), stream));
    RETURN_ERROR(
        SubmitSteps<T>(device_, x_, spec_, scopes_, &sums, steps.as<uint16_t>(), on_device));
    RETURN_ERROR(LaunchTiles(stream, scopes_.total, EncodeKernel<T, Round>, data(), scopes_.total,
                             steps.as<const uint16_t>(), ContiguousScopesOf(scopes_),
                             IsUnbiased(spec_.rounding), key_, spec_.has_means(), Round{},
                             bytes.as<uint8_t>(), on_device));
    RETURN_ERROR(payload.SubmitCopy(device_, 0, steps.as<const void>(), 2 * scopes_.count));
    RETURN_ERROR(payload.SubmitCopy(device_, header_bytes, bytes.as<const void>(), scopes_.total));
    Found found;
    RETURN_ERROR(device_->CopyToHost(&found, on_device, sizeof(found)));
    if (found.nonfinite != 0) return CudaNonFiniteError(device_, "ecsq", x_);
    RETURN_ERROR(PutHeader(found, payload.behind(2 * scopes_.count)));
    *payload.bytes = header_bytes + static_cast<size_t>(scopes_.total);
    if (found.escapes == 0) return Error{};
    Escapes escapes(device_);
    RETURN_ERROR(escapes.Count(bytes.as<const uint8_t>(), scopes_.total));
    RETURN_ERROR(escapes.SubmitPlaces(bytes.as<const uint8_t>(), scopes_.total));
    return AppendEscapes(payload, escapes, steps.as<const uint16_t>());
  }

 private:
  const T* data() const { return static_cast<const T*>(x_.data); }

  // What stands behind the steps.
  Error PutHeader(const Found& found, const PayloadTarget& to) const {
    if (spec_.rounding == Rounding::kDither) return to.Put(device_, 0, key_);
    if (!spec_.has_means()) return Error{};
    std::array<int8_t, kMeans> means;
    for (int m = 0; m < kMeans; ++m) {
      means[m] =
          MeanOf(static_cast<int64_t>(found.fractions[m]), static_cast<int64_t>(found.count[m]));
    }
    return to.Put(device_, 0, means);
  }

  Error AppendEscapes(const PayloadTarget& payload, const Escapes& escapes, const uint16_t* steps) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    const size_t code_bytes = sizeof(int32_t) * escapes.count();
    CudaScratch codes(device_);
    RETURN_ERROR(codes.Reserve(code_bytes));
    RETURN_ERROR(Launch(stream, BlocksFor(escapes.count(), kThreads), dim3(kThreads),
                        EscapesKernel<T, Round>, data(), escapes.places(), escapes.count(), steps,
                        scopes_.elements, key_, Round{}, codes.as<int32_t>()));
    RETURN_ERROR(payload.SubmitCopy(device_, *payload.bytes, codes.as<const void>(), code_bytes));
    *payload.bytes += code_bytes;
    return device_->Finish();
  }

  CudaDevice* const device_;
  const CodecSpec& spec_;
  const Scopes scopes_;
  const uint64_t key_;
  const TensorView x_;
};

template <typename T>
Error EncodeAs(CudaDevice* device, const TensorView& x, const CodecSpec& spec, uint64_t key,
               const PayloadTarget& payload) {
  switch (spec.rounding) {
    case Rounding::kNearest:
      return Encoder<T, ToNearest>(device, x, spec, key).Encode(payload);
    case Rounding::kStochastic:
      return Encoder<T, ByChance>(device, x, spec, key).Encode(payload);
    case Rounding::kDither:
      return Encoder<T, WithDither>(device, x, spec, key).Encode(payload);
    case Rounding::kDeadZone:
    case Rounding::kRateDistortion:  // begins so (compress/code_choice.h)
      return Encoder<T, DownTo>(device, x, spec, key).Encode(payload);
    case Rounding::kNearestNonzero:
      return Encoder<T, ToNearestNonzero>(device, x, spec, key).Encode(payload);
  }
  return Error{};
}

// What is wrong with a payload that was refused.
Error RefusalOf(const PayloadView& payload, const CodecSpec& spec, const Scopes& scopes) {
  const size_t header_bytes = EcsqHeaderBytes(spec, scopes);
  const size_t least = header_bytes + static_cast<size_t>(scopes.total);
  const uint8_t* const bytes = payload.data + header_bytes;
  const auto escapes = static_cast<size_t>(std::count(bytes, payload.data + least, kEscape));
  RETURN_ERROR(CheckPayloadBytes("ecsq", payload.bytes, least + 4 * escapes));
  for (int64_t scope = 0; scope < scopes.count; ++scope) {
    const auto bits = LoadAs<uint16_t>(payload.data + 2 * scope);
    if (!IsStep(bits)) return StepError(scope, FromBFloat(bits));
  }
  const uint8_t* next = payload.data + least;
  for (int64_t i = 0; i < scopes.total; ++i) {
    if (bytes[i] != kEscape) continue;
    const auto code = LoadAs<int32_t>(next);
    if (ZigZag(code) < kEscape) return EscapeError(i, code);
    next += 4;
  }
  return MakeError(absl::StatusCode::kInternal, "ecsq: the GPU refuses what the CPU decodes");
}

// A payload of one element type, on its way into a tensor.
template <typename T>
class Decoder {
 public:
  Decoder(CudaDevice* device, const CodecSpec& spec, const TensorView& x)
      : device_(device),
        spec_(spec),
        scopes_(ScopesOf(x, spec.scope, spec.group)),
        x_(static_cast<T*>(x.data)),
        steps_(device),
        bytes_(device),
        codes_(device),
        met_(device) {}

  // Sets *is_refused if the payload, which has a header and a byte for each element, is no right
  // one. Waits.
  Error Decode(const PayloadSource& payload, bool* is_refused) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    const size_t header_bytes = EcsqHeaderBytes(spec_, scopes_);
    RETURN_ERROR(ReadHeader(payload.behind(2 * scopes_.count)));
    RETURN_ERROR(steps_.Reserve(2 * scopes_.count));
    RETURN_ERROR(bytes_.Reserve(scopes_.total + 4));
    RETURN_ERROR(met_.Reserve(sizeof(Met)));
    CUDA_RETURN_IF_ERROR(cudaMemsetAsync(met_.as<void>(), 0, sizeof(Met), stream));
    RETURN_ERROR(payload.SubmitCopy(device_, 0, 2 * scopes_.count, steps_.as<void>()));
    RETURN_ERROR(payload.SubmitCopy(device_, header_bytes, scopes_.total, bytes_.as<void>()));
    RETURN_ERROR(Launch(stream, BlocksFor(scopes_.count, kThreads), dim3(kThreads),
                        CheckStepsKernel, steps(), scopes_.count, met_.as<Met>()));
    RETURN_ERROR(LaunchTiles(stream, scopes_.total, DecodeKernel<T>, bytes(), scopes_.total,
                             steps(), ContiguousScopesOf(scopes_), dithers(), key_, means_, x_,
                             met_.as<Met>()));
    Met met;
    RETURN_ERROR(device_->CopyToHost(&met, met_.as<const void>(), sizeof(met)));
    const size_t least = header_bytes + static_cast<size_t>(scopes_.total);
    *is_refused = met.fault != 0 || (met.escapes == 0 && payload.bytes != least);
    if (*is_refused || met.escapes == 0) return Error{};
    Escapes escapes(device_);
    RETURN_ERROR(escapes.Count(bytes(), scopes_.total));
    *is_refused = payload.bytes != least + 4 * static_cast<size_t>(escapes.count());
    if (*is_refused) return Error{};
    RETURN_ERROR(SubmitEscapes(payload.behind(least), &escapes));
    RETURN_ERROR(device_->CopyToHost(&met, met_.as<const void>(), sizeof(met)));
    *is_refused = met.fault != 0;
    return Error{};
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
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    RETURN_ERROR(escapes->SubmitPlaces(bytes(), scopes_.total));
    RETURN_ERROR(codes_.Reserve(4 * count));
    RETURN_ERROR(behind_bytes.SubmitCopy(device_, 0, 4 * count, codes_.as<void>()));
    return Launch(stream, BlocksFor(count, kThreads), dim3(kThreads), PatchKernel<T>,
                  escapes->places(), codes_.as<const int32_t>(), count, steps(), scopes_.elements,
                  dithers(), key_, x_, met_.as<Met>());
  }

  CudaDevice* const device_;
  const CodecSpec& spec_;
  const Scopes scopes_;
  T* const x_;
  uint64_t key_ = 0;
  Means means_;
  CudaScratch steps_, bytes_, codes_, met_;
};

}  // namespace

Error CudaEcsqEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                     const KernelContext& context, const PayloadTarget& payload) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckCapacity("ecsq", payload.capacity, EcsqMaxPayloadBytes(spec, scopes)));
  if (scopes.count == 0) {
    *payload.bytes = EcsqHeaderBytes(spec, scopes);
    if (spec.rounding == Rounding::kDither) return payload.Put(device, 0, context.random_key);
    return spec.has_means() ? payload.Put(device, 0, uint32_t{0}) : Error{};
  }
  return x.dtype == DType::kF32 ? EncodeAs<float>(device, x, spec, context.random_key, payload)
                                : EncodeAs<uint16_t>(device, x, spec, context.random_key, payload);
}

Error CudaEcsqDecode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                     const KernelContext& /*context*/, const TensorView& x) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  const size_t least = EcsqHeaderBytes(spec, scopes) + static_cast<size_t>(scopes.total);
  if (payload.bytes < least || scopes.count == 0) {
    return CheckPayloadBytes("ecsq", payload.bytes, least);
  }
  bool is_refused = false;
  RETURN_ERROR(x.dtype == DType::kF32
                   ? Decoder<float>(device, spec, x).Decode(payload, &is_refused)
                   : Decoder<uint16_t>(device, spec, x).Decode(payload, &is_refused));
  if (!is_refused) return Error{};
  return payload.is_on_device() ? PayloadSource::Refused()
                                : RefusalOf(payload.on_host(), spec, scopes);
}

}  // namespace thinwire
