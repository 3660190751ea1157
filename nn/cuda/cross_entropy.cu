#include <cfloat>
#include <cmath>

#include "nn/cuda/kernels.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Returns e^(logit - origin), by the instruction for powers of two.
__device__ inline float Exponential(float logit, float origin) {
  constexpr float kLog2E = 1.44269504f;
  return exp2f((logit - origin) * kLog2E);
}

// Returns what is subtracted before an exponential. It is finite, so that logits of minus infinity
// get no share.
__device__ inline float OriginOf(float greatest) { return fmaxf(greatest, -FLT_MAX); }

// Calls use(values, c) for the classes c, c + 1, ... of the row that are this thread's. All loads
// of kAhead vectors come before the first use, which may store to the same places.
template <int kN, typename T, int kRowWarps, typename Use>
__device__ inline void ForEachOfRow(const RowThread<kRowWarps>& thread, const T* logits,
                                    int64_t classes, const Use& use) {
  constexpr int kAhead = kRowWarps > kWarps ? 2 : 4;
  constexpr int64_t kStep = RowThread<kRowWarps>::kCount * kN;
  const int64_t whole = classes / kN * kN;
  for (int64_t first = thread.index * kN; first < whole; first += kAhead * kStep) {
    float values[kAhead][kN];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int64_t c = first + j * kStep;
      if (c < whole) LoadAligned(logits + c, values[j]);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int64_t c = first + j * kStep;
      if (c < whole) use(values[j], c);
    }
  }
  const int64_t c = whole + thread.index;  // fewer elements than threads
  if (c >= classes) return;
  const float value[1] = {Load(logits + c)};
  use(value, c);
}

// Findings of a thread in its part of a row so far: the first greatest logit, and the sum of
// exponentials.
struct Met {
  float greatest, origin, sum = 0;
  int64_t top = 0;

  __device__ explicit Met(float first) : greatest(first), origin(OriginOf(first)) {}

  template <int kN>
  __device__ void Add(const float (&logits)[kN], int64_t c) {
    float most = logits[0];
#pragma unroll
    for (int i = 1; i < kN; ++i) most = fmaxf(most, logits[i]);
    if (most > greatest) Raise(logits, c);
    float more = 0;
#pragma unroll
    for (int i = 0; i < kN; ++i) more += Exponential(logits[i], origin);
    sum += more;
  }

 private:
  // Takes a new greatest logit and rescales the sum. This happens seldom, and less so the further a
  // row is read.
  template <int kN>
  __device__ void Raise(const float (&logits)[kN], int64_t c) {
    const float before = origin;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      if (!(logits[i] > greatest)) continue;
      greatest = logits[i];
      top = c + i;
    }
    origin = OriginOf(greatest);
    sum *= Exponential(before, origin);
  }
};

// Leaves a row out: no loss and no gradient.
template <typename T, int kRowWarps>
__device__ inline void IgnoreRow(const RowThread<kRowWarps>& thread, const CrossEntropy& a,
                                 LossSums* of_rows) {
  if (thread.index == 0) of_rows[thread.row] = LossSums{};
  if (a.dlogits.data == nullptr) return;
  const int64_t elements = a.logits.dims[1];
  T* const dlogits = a.dlogits.as<T>() + thread.row * elements;
  for (int64_t c = thread.index; c < elements; c += thread.kCount) Store(0, dlogits + c);
}

// Goes over a row twice; the second pass finds it in the L2 cache. A thread adds up a few hundred
// exponentials in fp32. Sums over threads and the rest of the loss are fp64. All threads begin with
// class 0, so a NaN there stays the greatest and others are passed over, as on the CPU. Either
// makes the loss NaN, and so does an infinite logit.
template <typename T, int kN, int kRowWarps>
__global__ void __launch_bounds__(kRowWarps == 1 ? kThreads : kRowWarps * kWarpThreads,
                                  kRowWarps > kWarps ? 2 : 1)
    LossOfRow(CrossEntropy a, LossSums* of_rows) {
  const RowThread<kRowWarps> thread;
  if (thread.row >= a.logits.dims[0]) return;
  const int64_t elements = a.logits.dims[1], first = thread.row * elements;
  const T* const logits = a.logits.as<const T>() + first;
  const int64_t label = a.labels[thread.row];
  if (label < 0) return IgnoreRow<T>(thread, a, of_rows);
  // Read before the threads meet in a sum, as dlogits may be the same memory.
  const double of_label = static_cast<double>(Load(logits + label));
  Met met{Load(logits)};
  ForEachOfRow<kN>(thread, logits, a.classes,
                   [&](const auto& values, int64_t c) { met.Add(values, c); });
  const float greatest = thread.template Reduce<Greatest>(met.greatest);
  const int64_t top = thread.template Reduce<Least>(met.greatest < greatest ? a.classes : met.top);
  const float origin = OriginOf(greatest);
  const double sum = thread.template Reduce<Sum>(
      static_cast<double>(met.sum) * static_cast<double>(Exponential(met.origin, origin)));
  if (thread.index == 0) {
    of_rows[thread.row] = {log(sum) + static_cast<double>(greatest) - of_label, top == label, 1};
  }
  if (a.dlogits.data == nullptr) return;
  T* const dlogits = a.dlogits.as<T>() + first;
  const auto batch_size = static_cast<double>(a.batch_size);
  const auto factor = static_cast<float>(1 / (sum * batch_size));
  ForEachOfRow<kN>(thread, logits, a.classes, [&](const auto& values, int64_t c) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) gradients[i] = factor * Exponential(values[i], origin);
    if (c <= label && label < c + kCount) {
      const double share = exp(of_label - static_cast<double>(greatest)) / sum;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (c + i == label) gradients[i] = static_cast<float>((share - 1) / batch_size);
      }
    }
    StoreAligned(gradients, dlogits + c);
  });
  for (int64_t c = a.classes + thread.index; c < elements; c += thread.kCount) {
    Store(0, dlogits + c);
  }
}

// Adds up the losses of all rows, in one block. `sums` is host memory.
__global__ void AddUpLosses(const LossSums* of_rows, int64_t rows, LossSums* sums) {
  double loss = 0;
  int64_t correct = 0, counted = 0;
  for (int64_t i = threadIdx.x; i < rows; i += kThreads) {
    loss += of_rows[i].loss;
    correct += of_rows[i].correct;
    counted += of_rows[i].counted;
  }
  loss = BlockReduce<Sum>(loss);
  correct = BlockReduce<Sum>(correct);
  counted = BlockReduce<Sum>(counted);
  if (threadIdx.x != 0) return;
  sums->loss = loss;
  sums->correct = correct;
  sums->counted = counted;
}

// Warps for a huge row. So a device has few such rows under way, and its L2 cache holds them from
// one pass to the next.
constexpr int kWarpsOfHuge = 12;
constexpr size_t kHugeRowBytes = size_t{1} << 15;

template <typename T, int kN>
Error LaunchRows(CudaDevice* device, const CrossEntropy& a, LossSums* of_rows) {
  const int64_t rows = a.logits.dims[0];
  if (static_cast<size_t>(a.classes) * sizeof(T) >= kHugeRowBytes) {
    return Launch(device, BlocksWith(1, rows), dim3(kWarpsOfHuge * kWarpThreads),
                  LossOfRow<T, kN, kWarpsOfHuge>, a, of_rows);
  }
  return IsLongRow(a.classes) ? Launch(device, BlocksWith(1, rows), dim3(kThreads),
                                       LossOfRow<T, kN, kWarps>, a, of_rows)
                              : Launch(device, BlocksWith(kWarps, rows), dim3(kThreads),
                                       LossOfRow<T, kN, 1>, a, of_rows);
}

}  // namespace

Error Kernels::SoftmaxCrossEntropy(const CrossEntropy& a, LossSums* sums) {
  const int64_t rows = a.logits.dims[0];
  CudaScratch labels(device_), of_rows(device_);
  RETURN_ERROR(labels.Reserve(static_cast<size_t>(rows) * sizeof(int32_t)));
  RETURN_ERROR(of_rows.Reserve(static_cast<size_t>(rows) * sizeof(LossSums)));
  RETURN_ERROR(device_->SubmitCopyFromHost(labels.as<int32_t>(), a.labels,
                                           static_cast<size_t>(rows) * sizeof(int32_t)));
  CrossEntropy there = a;
  there.labels = labels.as<int32_t>();
  RETURN_ERROR(WithElements(a.logits.dtype, IsWide(a.logits, a.dlogits.data), [&](auto type) {
    using T = typename decltype(type)::Type;
    return LaunchRows<T, decltype(type)::kVector>(device_, there, of_rows.as<LossSums>());
  }));
  return Launch(device_, dim3(1), dim3(kThreads), AddUpLosses, of_rows.as<LossSums>(), rows, sums);
}

}  // namespace thinwire::cuda
