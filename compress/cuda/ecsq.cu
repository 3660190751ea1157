#include <cuda_runtime.h>

#include <array>
#include <cmath>

#include "compress/bytes.h"
#include "compress/cpu/ecsq_header.h"
#include "compress/cpu/sum_of_squares.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/ecsq_codes.cuh"
#include "compress/cuda/quotient.cuh"
#include "compress/cuda/scope_cursor.cuh"
#include "compress/cuda/sum_in_order.cuh"
#include "compress/cuda/tile.cuh"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kLanes = static_cast<int>(kSquareLanes);
constexpr int kThreads = 256;
constexpr int64_t kFewStretches = 32;  // that one thread adds up

// Counts and fractions of the magnitudes 1 to kMeans; they may wrap.
struct Cells {
  unsigned long long count[kMeans], fractions[kMeans];
};

// Findings of an encoder besides the bytes. Blocks add to one of several Cells, so that they seldom
// wait for each other.
struct Found {
  static constexpr int kCopies = 16;
  Cells cells[kCopies];
  uint32_t nonfinite;
  uint32_t escapes;  // whether there are any
};

// Division of elements into scopes, and of these into stretches of kSquareStretch.
struct ScopeStretches {
  int64_t total, elements, stretches;
  __device__ int64_t ElementsOf(int64_t scope) const {
    return min(elements, total - scope * elements);
  }
};

// Sums squares with a thread per lane of a stretch, as for threshold.
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

// Steps of scopes, and what is found of them.
struct Steps {
  __device__ void Write(int64_t scope, int64_t elements, double sum_of_squares) const {
    const bool is_finite = sum_of_squares <= DBL_MAX;
    if (!is_finite) found->nonfinite = 1;
    steps[scope] = is_finite ? StepBits(sum_of_squares, elements, step) : 0;
  }
  double step;
  uint16_t* steps;
  Found* found;
};

// Adds up a scope's stretches and writes its step, a block per scope.
__global__ void __launch_bounds__(kSumThreads)
    StepKernel(const double* sums, ScopeStretches scopes, Steps steps) {
  const int64_t scope = blockIdx.x;
  const double sum = SumInOrder(sums + scope * scopes.stretches, scopes.stretches);
  if (threadIdx.x == 0) steps.Write(scope, scopes.ElementsOf(scope), sum);
}

// Does the same of scopes of few stretches, a thread per scope.
__global__ void StepsKernel(const double* sums, ScopeStretches scopes, int64_t count, Steps steps) {
  const int64_t scope = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (scope >= count) return;
  double sum = 0;
  for (int64_t i = 0; i < scopes.stretches; ++i) sum += sums[scope * scopes.stretches + i];
  steps.Write(scope, scopes.ElementsOf(scope), sum);
}

// Returns rintf(y) as an integer; small ones have magnitudes below 2^22. The sum with 1.5 * 2^23
// has no bits behind the point, so it is rounded to the nearest whole number. Its lower bits, less
// those of the constant, are that number.
template <bool kIsSmall>
__device__ inline int32_t Rounded(float y) {
  constexpr float kShift = 0x1.8p23f;
  if (!kIsSmall && !(fabsf(y) < 0x1p22f)) return static_cast<int32_t>(rintf(y));
  return __float_as_int(y + kShift) - __float_as_int(kShift);
}

// Roundings. Code<kIsSmall>() is the code of y steps. With kSeesTiny it depends on whether y is
// zero, with kHasChance on a random number.
struct ToNearest {
  static constexpr bool kSeesTiny = false, kHasChance = false;
  template <bool kIsSmall>
  __device__ static int32_t Code(float y, uint32_t) {
    return Rounded<kIsSmall>(y);
  }
};
struct DownTo {
  static constexpr bool kSeesTiny = false, kHasChance = false;
  template <bool kIsSmall>
  __device__ static int32_t Code(float y, uint32_t) {
    return static_cast<int32_t>(copysignf(floorf(fabsf(y) + 1.0f / 3), y));
  }
};
struct ToNearestNonzero {
  static constexpr bool kSeesTiny = true, kHasChance = false;
  template <bool kIsSmall>
  __device__ static int32_t Code(float y, uint32_t) {
    const float magnitude = fmaxf(fabsf(y), y == 0 ? 0.0f : 1.0f);
    return static_cast<int32_t>(rintf(copysignf(magnitude, y)));
  }
};
struct ByChance {
  static constexpr bool kSeesTiny = true, kHasChance = true;
  template <bool kIsSmall>
  __device__ static int32_t Code(float y, uint32_t random) {
    const float whole = floorf(y), chance = static_cast<float>(random >> 8) * 0x1p-24f;
    return static_cast<int32_t>(chance < y - whole ? whole + 1.0f : whole);
  }
};
struct WithDither {
  static constexpr bool kSeesTiny = false, kHasChance = true;
  template <bool kIsSmall>
  __device__ static int32_t Code(float y, uint32_t random) {
    return Rounded<kIsSmall>(y + Dither(random));
  }
};

// Bound of quotients whose code may have a byte: larger ones are taken for it.
constexpr float kMostSteps = 0x1p20f;

// Step of a scope, by which Divide is exact where a rounding's code depends on it.
template <bool kSeesTiny>
class Step {
 public:
  __device__ explicit Step(float step) : step_(step) {}
  __device__ float Divide(float x) const { return step_.template Divide<1>(x); }

 private:
  OrdinaryDivisor step_;
};
template <>
class Step<true> {
 public:
  __device__ explicit Step(float step) : step_(step) {}
  __device__ float Divide(float x) const { return step_.value() == 0 ? 0 : step_.Divide<1>(x); }

 private:
  Divisor step_;
};

// Counts and sums of a thread, then of a block. Nothing here is indexed by a number known only at
// run time, which would need local memory.
class CellSums {
 public:
  __device__ void Add(float y, int32_t code) {
    const int32_t magnitude = abs(code);
    // The magnitude as a float, without a conversion: it is the lower bits of 2^23 plus itself.
    const float whole = __int_as_float(__float_as_int(0x1p23f) | magnitude) - 0x1p23f;
    const int32_t counted = Rounded<true>((fabsf(y) - whole) * kFractionUnit) + kOne;
#pragma unroll
    for (int m = 0; m < kMeans; ++m) {
      if (magnitude == m + 1) of_thread_[m] += counted;
    }
  }

  // Adds the block's sums to *found; the whole block calls it.
  __device__ void AddTo(Found* found) const {
    constexpr int kWarps = kTileThreads / kWarpThreads;
    __shared__ int32_t counts[kWarps][kMeans], fractions[kWarps][kMeans];
    const unsigned warp = threadIdx.x / kWarpThreads;
#pragma unroll
    for (int m = 0; m < kMeans; ++m) {
      const int32_t count = (of_thread_[m] + kOne / 2) / kOne;
      const int32_t of_warp = __reduce_add_sync(kWholeWarp, count);
      const int32_t fractions_of_warp = __reduce_add_sync(kWholeWarp, of_thread_[m] - count * kOne);
      if (threadIdx.x % kWarpThreads == 0) {
        counts[warp][m] = of_warp;
        fractions[warp][m] = fractions_of_warp;
      }
    }
    __syncthreads();
    if (threadIdx.x >= kMeans) return;
    const unsigned m = threadIdx.x;
    long long count = 0, sum = 0;
    for (int w = 0; w < kWarps; ++w) {
      count += counts[w][m];
      sum += fractions[w][m];
    }
    if (count == 0) return;
    Cells* const cells = &found->cells[blockIdx.x % Found::kCopies];
    atomicAdd(&cells->count[m], static_cast<unsigned long long>(count));
    atomicAdd(&cells->fractions[m], static_cast<unsigned long long>(sum));
  }

 private:
  // Sums have their number of elements from bit 22 on, and below it the elements' fractions. Of
  // these a thread has at most 16, each at most one step.
  static constexpr int32_t kOne = 1 << 22;
  static_assert(4 * kTileVectors * kFractionUnit <= kOne / 4.0f, "fractions would meet counts");
  int32_t of_thread_[kMeans] = {};
};

// Stores the first `left` of four bytes at an even address; behind a header it need not be a
// multiple of four.
__device__ inline void StoreBytes(uint32_t word, int left, uint8_t* to) {
  if (left < 4) {
    for (int k = 0; k < left; ++k) to[k] = static_cast<uint8_t>(word >> (8 * k));
  } else if (reinterpret_cast<uintptr_t>(to) % sizeof(word) == 0) {
    *reinterpret_cast<uint32_t*>(to) = word;
  } else {
    auto* const halves = reinterpret_cast<uint16_t*>(to);
    halves[0] = static_cast<uint16_t>(word);
    halves[1] = static_cast<uint16_t>(word >> 16);
  }
}

// Encodes a tile: bytes, sums of cells, and whether there are escapes. An escape's code is computed
// again later (EscapesKernel), so that codes need no memory of their own.
template <typename T, typename Round>
__global__ void EncodeKernel(const T* x, int64_t n, const uint16_t* steps, ContiguousScopes scopes,
                             uint64_t key, bool has_means, uint8_t* bytes, Found* found) {
  ScopeCursor cursor(scopes, TileBegin(blockIdx.x));
  CellSums cells;
  bool escapes = false;
  int64_t scope_of_step = -1;
  using OwnStep = Step<Round::kSeesTiny>;
  OwnStep step(0);
  const auto step_of = [&](int64_t scope) {
    if (scope != scope_of_step) step = OwnStep(FromBFloat(steps[scope]));
    scope_of_step = scope;
    return step;
  };
  VisitTile(blockIdx.x, x, n, [&](int64_t i, const float(&v)[4]) {
    const Numbers numbers(Round::kHasChance, key, i);
    const int left = LeftOf(n, i);
    uint32_t word = 0;
    // Elements that are left out are zeros and have code 0.
    cursor.ForEach(left, step_of, [&](int k, const OwnStep& own_step) {
      const float y = fmaxf(fminf(own_step.Divide(v[k]), kMostSteps), -kMostSteps);
      const int32_t code = Round::template Code<true>(y, numbers.of[k]);
      if (has_means) cells.Add(y, code);
      const uint32_t zigzag = ZigZag(code);
      escapes = escapes || zigzag >= kEscape;
      word |= min(zigzag, uint32_t{kEscape}) << (8 * k);
    });
    cursor.Advance();
    StoreBytes(word, left, bytes + i);
  });
  if (escapes) found->escapes = 1;
  if (has_means) cells.AddTo(found);
}

// Computes the codes of some elements again: those that have no byte.
template <typename T, typename Round>
__global__ void EscapesKernel(const T* x, const int64_t* where, int64_t count,
                              const uint16_t* steps, int64_t elements, uint64_t key,
                              int32_t* codes) {
  const int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const int64_t i = where[j];
  const Numbers numbers(Round::kHasChance, key, i);
  const float y = Load(x + i) / FromBFloat(steps[i / elements]);
  codes[j] = Round::template Code<false>(y, numbers.At(i % 4));
}

template <typename T>
Error SubmitSteps(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                  const Scopes& scopes, CudaScratch* sums, uint16_t* steps, Found* found) {
  const ScopeStretches stretches = {scopes.total, scopes.elements,
                                    (scopes.elements + kSquareStretch - 1) / kSquareStretch};
  const int64_t all = stretches.stretches * scopes.count;
  RETURN_ERROR(sums->Reserve(all * sizeof(double)));
  RETURN_ERROR(Launch(device, BlocksFor(all, kThreads / kLanes), dim3(kThreads),
                      SumStretchesKernel<T>, static_cast<const T*>(x.data), stretches, all,
                      sums->as<double>()));
  const Steps to = {spec.step, steps, found};
  if (stretches.stretches <= kFewStretches) {
    return Launch(device, BlocksFor(scopes.count, kThreads), dim3(kThreads), StepsKernel,
                  sums->as<double>(), stretches, scopes.count, to);
  }
  return Launch(device, dim3(static_cast<unsigned>(scopes.count)), dim3(kSumThreads), StepKernel,
                sums->as<double>(), stretches, to);
}

// Encoder for one element type and rounding.
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
    const size_t header_bytes = EcsqHeaderBytes(spec_, scopes_);
    CudaScratch sums(device_), found_memory(device_);
    DevicePayload copied(device_);
    RETURN_ERROR(found_memory.ReserveZeros(sizeof(Found)));
    auto* const on_device = found_memory.as<Found>();
    // A payload in device memory is written in place.
    if (payload.on_device() == nullptr) {
      RETURN_ERROR(copied.Reserve(header_bytes, header_bytes + scopes_.total));
    }
    uint8_t* const room = payload.on_device() != nullptr ? payload.on_device() : copied.bytes();
    auto* const steps = reinterpret_cast<uint16_t*>(room);
    uint8_t* const bytes = room + header_bytes;
    RETURN_ERROR(SubmitSteps<T>(device_, x_, spec_, scopes_, &sums, steps, on_device));
    RETURN_ERROR(LaunchTiles(device_, scopes_.total, EncodeKernel<T, Round>, data(), scopes_.total,
                             steps, ContiguousScopesOf(scopes_), key_, spec_.has_means(), bytes,
                             on_device));
    if (payload.on_device() == nullptr) {
      RETURN_ERROR(payload.SubmitCopy(device_, 0, steps, 2 * scopes_.count));
      RETURN_ERROR(payload.SubmitCopy(device_, header_bytes, bytes, scopes_.total));
    }
    Found found;
    RETURN_ERROR(device_->CopyToHost(&found, on_device, sizeof(found)));
    if (found.nonfinite != 0) return CudaNonFiniteError(device_, "ecsq", x_);
    RETURN_ERROR(PutHeader(found, payload.behind(2 * scopes_.count)));
    *payload.bytes = header_bytes + static_cast<size_t>(scopes_.total);
    if (found.escapes == 0) return Error{};
    Escapes escapes(device_);
    RETURN_ERROR(escapes.Count(bytes, scopes_.total));
    RETURN_ERROR(escapes.SubmitPlaces(bytes, scopes_.total));
    return AppendEscapes(payload, escapes, steps);
  }

 private:
  const T* data() const { return static_cast<const T*>(x_.data); }

  // Writes the header behind the steps.
  Error PutHeader(const Found& found, const PayloadTarget& to) const {
    if (spec_.rounding == Rounding::kDither) return to.Put(device_, 0, key_);
    if (!spec_.has_means()) return Error{};
    std::array<int8_t, kMeans> means;
    for (int m = 0; m < kMeans; ++m) {
      unsigned long long fractions = 0, count = 0;
      for (const Cells& cells : found.cells) {
        fractions += cells.fractions[m];
        count += cells.count[m];
      }
      means[m] = MeanOf(static_cast<int64_t>(fractions), static_cast<int64_t>(count));
    }
    return to.Put(device_, 0, means);
  }

  Error AppendEscapes(const PayloadTarget& payload, const Escapes& escapes, const uint16_t* steps) {
    const size_t code_bytes = sizeof(int32_t) * escapes.count();
    CudaScratch codes(device_);
    RETURN_ERROR(codes.Reserve(code_bytes));
    RETURN_ERROR(Launch(device_, BlocksFor(escapes.count(), kThreads), dim3(kThreads),
                        EscapesKernel<T, Round>, data(), escapes.places(), escapes.count(), steps,
                        scopes_.elements, key_, codes.as<int32_t>()));
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
    case Rounding::kRateDistortion:  // starts as dead_zone (compress/codecs/code_choice.h)
      return Encoder<T, DownTo>(device, x, spec, key).Encode(payload);
    case Rounding::kNearestNonzero:
      return Encoder<T, ToNearestNonzero>(device, x, spec, key).Encode(payload);
  }
  return Error{};
}

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

}  // namespace thinwire
