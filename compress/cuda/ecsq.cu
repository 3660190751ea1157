#include <cuda_runtime.h>

#include <cmath>
#include <vector>

#include "compress/cpu/bytes.h"
#include "compress/cpu/ecsq_header.h"
#include "compress/cpu/square_order.h"
#include "compress/cuda/ecsq.h"
#include "compress/cuda/nonfinite.h"
#include "compress/cuda/philox.cuh"
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

struct ToNearest {
  __device__ int32_t operator()(float y, uint32_t) const { return static_cast<int32_t>(rintf(y)); }
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
    return static_cast<int32_t>(rintf(y + Dither(random)));
  }
};

// The numbers of the four elements from i on.
struct Numbers {
  uint32_t of[4] = {};
  __device__ Numbers(bool are_needed, uint64_t key, int64_t i) {
    if (are_needed) PhiloxNumbers(key, static_cast<uint64_t>(i) / 4, of);
  }
};

// What a thread, then a block, adds to Found.
struct CellSums {
  long long count[kMeans] = {}, fractions[kMeans] = {};

  __device__ void Add(float y, int32_t code) {
    const int32_t magnitude = abs(code);
    if (magnitude < 1 || magnitude > kMeans) return;
    const float above = fabsf(y) - static_cast<float>(magnitude);
    ++count[magnitude - 1];
    fractions[magnitude - 1] += static_cast<long long>(rintf(above * kFractionUnit));
  }
  __device__ void AddTo(Found* found) const {
    for (int m = 0; m < kMeans; ++m) {
      const long long counts = BlockReduce<Sum>(count[m]);
      const long long sums = BlockReduce<Sum>(fractions[m]);
      if (threadIdx.x != 0 || counts == 0) continue;
      atomicAdd(&found->count[m], static_cast<unsigned long long>(counts));
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
  VisitTile(blockIdx.x, x, n, [&](int64_t i, const float(&v)[4]) {
    const Numbers numbers(has_chance, key, i);
    const int left = LeftOf(n, i);
    uint32_t word = 0;
    const auto step_of = [steps](int64_t scope) { return FromBFloat(steps[scope]); };
    cursor.ForEach(left, step_of, [&](int k, float step) {
      if (k >= left || step == 0) return;
      const float y = v[k] / step;
      const int32_t code = round(y, numbers.of[k]);
      if (has_means) cells.Add(y, code);
      const uint32_t zigzag = ZigZag(code);
      word |= (zigzag < kEscape ? zigzag : kEscape) << (8 * k);
    });
    cursor.Advance();
    if (i < n) *reinterpret_cast<uint32_t*>(bytes + i) = word;
  });
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
};

template <typename T>
__global__ void DecodeKernel(const uint8_t* bytes, int64_t n, const uint16_t* steps,
                             ContiguousScopes scopes, bool dithers, uint64_t key, Means means,
                             T* x) {
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
      const uint32_t magnitude = (zigzag + 1) / 2;
      const bool has_mean = magnitude >= 1 && magnitude <= kMeans;
      const float mean = has_mean ? means.of[magnitude - 1] : 0.0f;
      const float above = static_cast<float>(magnitude) + mean;
      const float y = zigzag % 2 != 0 ? -above : above;
      v[k] = ValueOfSteps(dithers ? y - Dither(numbers.of[k]) : y, step);
    });
    cursor.Advance();
    StoreVector(v, left, x + i);
  }
}

// The values of codes that have no byte.
template <typename T>
__global__ void PatchKernel(const int64_t* where, const int32_t* codes, int64_t count,
                            const uint16_t* steps, int64_t elements, bool dithers, uint64_t key,
                            T* x) {
  const int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const int64_t i = where[j];
  const Numbers numbers(dithers, key, i);
  const float code = static_cast<float>(codes[j]);
  const float v[4] = {ValueOfSteps(dithers ? code - Dither(numbers.of[i % 4]) : code,
                                   FromBFloat(steps[i / elements]))};
  StoreVector(v, 1, x + i);
}

std::vector<int64_t> EscapesIn(const uint8_t* bytes, int64_t n) {
  std::vector<int64_t> where;
  for (int64_t i = 0; i < n; ++i) {
    if (bytes[i] == kEscape) where.push_back(i);
  }
  return where;
}

// In device memory. `numbers` stay as they are until the stream is done.
template <typename T>
Error SubmitUpload(CudaDevice* device, const std::vector<T>& numbers, CudaScratch* to) {
  RETURN_ERROR(to->Reserve(numbers.size() * sizeof(T)));
  return device->SubmitCopyFromHost(to->as<T>(), numbers.data(), numbers.size() * sizeof(T));
}

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

  Error Encode(const PayloadBuffer& payload) {
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
    RETURN_ERROR(
        device_->SubmitCopyToHost(payload.data, steps.as<const void>(), 2 * scopes_.count));
    RETURN_ERROR(device_->SubmitCopyToHost(payload.data + header_bytes, bytes.as<const void>(),
                                           scopes_.total));
    Found found;
    RETURN_ERROR(device_->CopyToHost(&found, on_device, sizeof(found)));
    if (found.nonfinite != 0) return CudaNonFiniteError(device_, "ecsq", x_);
    WriteHeader(found, payload.data + 2 * scopes_.count);
    *payload.bytes = header_bytes + static_cast<size_t>(scopes_.total);
    return AppendEscapes(payload, payload.data + header_bytes, steps.as<const uint16_t>());
  }

 private:
  const T* data() const { return static_cast<const T*>(x_.data); }

  // What stands behind the steps.
  void WriteHeader(const Found& found, uint8_t* to) const {
    if (spec_.rounding == Rounding::kDither) StoreAs(key_, to);
    for (int m = 0; m < kMeans && spec_.has_means(); ++m) {
      to[m] = static_cast<uint8_t>(
          MeanOf(static_cast<int64_t>(found.fractions[m]), static_cast<int64_t>(found.count[m])));
    }
  }

  Error AppendEscapes(const PayloadBuffer& payload, const uint8_t* bytes, const uint16_t* steps) {
    const std::vector<int64_t> where = EscapesIn(bytes, scopes_.total);
    if (where.empty()) return Error{};
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    const auto count = static_cast<int64_t>(where.size());
    CudaScratch where_memory(device_), codes(device_);
    RETURN_ERROR(SubmitUpload(device_, where, &where_memory));
    RETURN_ERROR(codes.Reserve(4 * where.size()));
    RETURN_ERROR(Launch(stream, BlocksFor(count, kThreads), dim3(kThreads), EscapesKernel<T, Round>,
                        data(), where_memory.as<const int64_t>(), count, steps, scopes_.elements,
                        key_, Round{}, codes.as<int32_t>()));
    RETURN_ERROR(device_->CopyToHost(payload.data + *payload.bytes, codes.as<const void>(),
                                     4 * where.size()));
    *payload.bytes += 4 * where.size();
    return Error{};
  }

  CudaDevice* const device_;
  const CodecSpec& spec_;
  const Scopes scopes_;
  const uint64_t key_;
  const TensorView x_;
};

template <typename T>
Error EncodeAs(CudaDevice* device, const TensorView& x, const CodecSpec& spec, uint64_t key,
               const PayloadBuffer& payload) {
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

// What a payload says, in host memory, once it has been checked.
struct Parsed {
  const uint8_t* bytes = nullptr;
  uint64_t key = 0;
  Means means;
  std::vector<int64_t> where;
  std::vector<int32_t> codes;
};

Error Parse(const PayloadView& payload, const CodecSpec& spec, const Scopes& scopes,
            Parsed* parsed) {
  const size_t header_bytes = EcsqHeaderBytes(spec, scopes);
  const size_t least = header_bytes + static_cast<size_t>(scopes.total);
  if (payload.bytes < least) return CheckPayloadBytes("ecsq", payload.bytes, least);
  parsed->bytes = payload.data + header_bytes;
  parsed->where = EscapesIn(parsed->bytes, scopes.total);
  RETURN_ERROR(CheckPayloadBytes("ecsq", payload.bytes, least + 4 * parsed->where.size()));
  for (int64_t scope = 0; scope < scopes.count; ++scope) {
    const auto bits = LoadAs<uint16_t>(payload.data + 2 * scope);
    if (!IsStep(bits)) return StepError(scope, FromBFloat(bits));
  }
  for (const int64_t i : parsed->where) {
    const auto code = LoadAs<int32_t>(payload.data + least + 4 * parsed->codes.size());
    if (ZigZag(code) < kEscape) return EscapeError(i, code);
    parsed->codes.push_back(code);
  }
  const uint8_t* const behind_steps = payload.data + 2 * scopes.count;
  if (spec.rounding == Rounding::kDither) parsed->key = LoadAs<uint64_t>(behind_steps);
  for (int m = 0; m < kMeans && spec.has_means(); ++m) {
    parsed->means.of[m] = static_cast<float>(LoadAs<int8_t>(behind_steps + m)) * kMeanUnit;
  }
  return Error{};
}

template <typename T>
Error DecodeAs(CudaDevice* device, const PayloadView& payload, const CodecSpec& spec,
               const Scopes& scopes, const Parsed& parsed, const TensorView& x) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const bool dithers = spec.rounding == Rounding::kDither;
  CudaScratch steps(device), bytes(device), where(device), codes(device);
  RETURN_ERROR(steps.Reserve(2 * scopes.count));
  RETURN_ERROR(bytes.Reserve(scopes.total + 4));
  RETURN_ERROR(device->SubmitCopyFromHost(steps.as<void>(), payload.data, 2 * scopes.count));
  RETURN_ERROR(device->SubmitCopyFromHost(bytes.as<void>(), parsed.bytes, scopes.total));
  RETURN_ERROR(LaunchTiles(stream, scopes.total, DecodeKernel<T>, bytes.as<const uint8_t>(),
                           scopes.total, steps.as<const uint16_t>(), ContiguousScopesOf(scopes),
                           dithers, parsed.key, parsed.means, static_cast<T*>(x.data)));
  if (!parsed.where.empty()) {
    const auto count = static_cast<int64_t>(parsed.where.size());
    RETURN_ERROR(SubmitUpload(device, parsed.where, &where));
    RETURN_ERROR(SubmitUpload(device, parsed.codes, &codes));
    RETURN_ERROR(Launch(stream, BlocksFor(count, kThreads), dim3(kThreads), PatchKernel<T>,
                        where.as<const int64_t>(), codes.as<const int32_t>(), count,
                        steps.as<const uint16_t>(), scopes.elements, dithers, parsed.key,
                        static_cast<T*>(x.data)));
  }
  return device->Finish();
}

}  // namespace

Error CudaEcsqEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                     const KernelContext& context, const PayloadBuffer& payload) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  RETURN_ERROR(CheckCapacity("ecsq", payload.capacity, EcsqMaxPayloadBytes(spec, scopes)));
  if (scopes.count == 0) {
    *payload.bytes = EcsqHeaderBytes(spec, scopes);
    if (spec.rounding == Rounding::kDither) StoreAs(context.random_key, payload.data);
    if (spec.has_means()) StoreAs(uint32_t{0}, payload.data);
    return Error{};
  }
  return x.dtype == DType::kF32 ? EncodeAs<float>(device, x, spec, context.random_key, payload)
                                : EncodeAs<uint16_t>(device, x, spec, context.random_key, payload);
}

Error CudaEcsqDecode(CudaDevice* device, const PayloadView& payload, const CodecSpec& spec,
                     const KernelContext& /*context*/, const TensorView& x) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  Parsed parsed;
  RETURN_ERROR(Parse(payload, spec, scopes, &parsed));
  if (scopes.count == 0) return Error{};
  return x.dtype == DType::kF32 ? DecodeAs<float>(device, payload, spec, scopes, parsed, x)
                                : DecodeAs<uint16_t>(device, payload, spec, scopes, parsed, x);
}

}  // namespace thinwire
