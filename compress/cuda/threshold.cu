#include <cmath>
#include <type_traits>

#include "compress/cpu/entries_header.h"
#include "compress/cpu/sum_of_squares.h"
#include "compress/cpu/threshold_unit.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/entries.h"
#include "compress/cuda/keys.cuh"
#include "compress/cuda/mark.h"
#include "compress/cuda/sum_in_order.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kStretchesOfBlock = kThreads / static_cast<int>(kSquareLanes);

// Sums squares with a thread per lane of a stretch; then all threads sum the lanes in order.
template <typename K>
__global__ void SumStretchesKernel(K keys, int64_t stretches, double* sums) {
  constexpr int kLanes = static_cast<int>(kSquareLanes);
  const int lane = threadIdx.x % kLanes;
  const int64_t stretch = int64_t{blockIdx.x} * kStretchesOfBlock + threadIdx.x / kLanes;
  const int64_t begin = stretch * kSquareStretch, end = min(begin + kSquareStretch, keys.total);
  double of_lane = 0;
#pragma unroll 8
  for (int64_t i = begin + lane; i < end; i += kLanes) {
    const double value = __uint_as_float(keys.Magnitude(i));
    of_lane += value * value;
  }
  double sum = 0;
  for (int j = 0; j < kLanes; ++j) sum += __shfl_sync(kWholeWarp, of_lane, j, kLanes);
  if (lane == 0 && stretch < stretches) sums[stretch] = sum;
}

// Computes *least from the sums of stretches, with one block.
__global__ void __launch_bounds__(kSumThreads)
    RmsThresholdKernel(const double* sums, int64_t stretches, int64_t count, double threshold,
                       uint32_t* least) {
  const double sum = SumInOrder(sums, stretches);
  if (threadIdx.x != 0) return;
  const double unit = sqrt(sum / static_cast<double>(count));
  *least = LeastMagnitude(threshold * unit);
}

// Computes *least from the largest magnitude.
__global__ void MaxThresholdKernel(const uint32_t* largest, double threshold, uint32_t* least) {
  if (threadIdx.x == 0) *least = LeastMagnitude(threshold * double{FloatOf(*largest)});
}

// Numbers from which the threshold is computed, and the threshold itself.
struct Unit {
  explicit Unit(CudaDevice* device) : sums(device), largest(device), least(device) {}
  CudaScratch sums, largest, least;
};

Error SubmitRms(CudaDevice* device, const Keys& keys, int64_t count, double threshold, Unit* unit) {
  const int64_t stretches = (keys.total + kSquareStretch - 1) / kSquareStretch;
  RETURN_ERROR(unit->sums.Reserve(8 * (stretches + 1)));
  RETURN_ERROR(WithKeysInMemory(keys, [&](const auto& typed) {
    using K = std::decay_t<decltype(typed)>;
    return Launch(device, BlocksFor(stretches, kStretchesOfBlock), dim3(kThreads),
                  SumStretchesKernel<K>, typed, stretches, unit->sums.as<double>());
  }));
  return Launch(device, dim3(1), dim3(kSumThreads), RmsThresholdKernel, unit->sums.as<double>(),
                stretches, count, threshold, unit->least.as<uint32_t>());
}

Error SubmitMax(CudaDevice* device, const Keys& keys, double threshold, Unit* unit) {
  RETURN_ERROR(unit->largest.ReserveZeros(4));
  RETURN_ERROR(SubmitLargestMagnitude(device, keys, unit->largest.as<uint32_t>()));
  return Launch(device, dim3(1), dim3(32), MaxThresholdKernel, unit->largest.as<uint32_t>(),
                threshold, unit->least.as<uint32_t>());
}

// Sets *least, either to a number or to where the device will have it.
Error SubmitLeast(CudaDevice* device, const Keys& keys, int64_t count, const CodecSpec& spec,
                  Unit* unit, LeastMarked* least) {
  RETURN_ERROR(unit->least.Reserve(4));
  least->in_memory = unit->least.as<uint32_t>();
  switch (spec.relative_to) {
    case RelativeTo::kAbsolute:
      *least = {LeastMagnitude(spec.threshold), nullptr};
      return Error{};
    case RelativeTo::kRms:
      return SubmitRms(device, keys, count, spec.threshold, unit);
    case RelativeTo::kMax:
      return SubmitMax(device, keys, spec.threshold, unit);
  }
  return Error{};
}

}  // namespace

Error SubmitThresholdEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                            const KernelContext& context, EntriesOnDevice* payload) {
  const Keys keys = KeysOf(x, context.support);
  const int64_t count = context.support == nullptr ? keys.total : context.support->count;
  RETURN_ERROR(payload->Reserve(x, spec, context, count));
  Unit unit(device);
  LeastMarked least;
  RETURN_ERROR(SubmitLeast(device, keys, count, spec, &unit, &least));
  RETURN_ERROR(SubmitMark(device, keys, least, payload->kept(), /*count=*/nullptr,
                          &payload->plan()->nonfinite));
  return payload->Submit();
}

Error CudaThresholdEncode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                          const KernelContext& context, const PayloadTarget& payload) {
  RETURN_ERROR(CheckElements(spec, x.elements()));
  EntriesOnDevice on_device(device);
  RETURN_ERROR(SubmitThresholdEncode(device, x, spec, context, &on_device));
  return on_device.CopyTo(payload);
}

}  // namespace thinwire
