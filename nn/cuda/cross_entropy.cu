#include <cmath>

#include "nn/cuda/cross_entropy.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

struct Totals {
  double loss;
  int64_t correct;
};

template <typename T>
struct Arguments {
  const T* logits;
  T* dlogits;  // null: not wanted
  const int32_t* labels;
  Totals* of_rows;
  int64_t rows, classes;
  double batch_size;
};

// The first greatest class of the row; every thread gets its index and logit. All threads start
// with class 0, so that a NaN there stays the greatest and others are passed over, as on the CPU.
template <typename T, int kRowWarps>
__device__ inline int64_t FirstGreatest(const RowThread<kRowWarps>& thread, const T* logits,
                                        int64_t classes, float* greatest) {
  float best = Load(logits);
  int64_t top = 0;
  for (int64_t c = thread.index; c < classes; c += thread.kCount) {
    const float v = Load(logits + c);
    if (v > best) {
      best = v;
      top = c;
    }
  }
  *greatest = thread.template Reduce<Greatest>(best);
  return thread.template Reduce<Least>(best < *greatest ? classes : top);
}

template <typename T, int kRowWarps>
__global__ void LossOfRow(Arguments<T> a) {
  const RowThread<kRowWarps> thread;
  if (thread.row >= a.rows) return;
  const T* const logits = a.logits + thread.row * a.classes;
  float best = 0;
  const int64_t top = FirstGreatest(thread, logits, a.classes, &best);
  const double greatest = static_cast<double>(best);
  const int64_t label = a.labels[thread.row];
  // Read before the threads meet in a sum: dlogits may be the same memory.
  const double of_label = static_cast<double>(Load(logits + label));
  double sum = 0;
  for (int64_t c = thread.index; c < a.classes; c += thread.kCount) {
    sum += exp(static_cast<double>(Load(logits + c)) - greatest);
  }
  sum = thread.template Reduce<Sum>(sum);
  if (thread.index == 0) {
    a.of_rows[thread.row].loss = log(sum) + greatest - of_label;
    a.of_rows[thread.row].correct = top == label;
  }
  if (a.dlogits == nullptr) return;
  T* const dlogits = a.dlogits + thread.row * a.classes;
  for (int64_t c = thread.index; c < a.classes; c += thread.kCount) {
    const double share = exp(static_cast<double>(Load(logits + c)) - greatest) / sum;
    Store(static_cast<float>((share - (c == label ? 1.0 : 0.0)) / a.batch_size), dlogits + c);
  }
}

// Launched as one block.
__global__ void AddUpLosses(const Totals* of_rows, int64_t rows, Totals* totals) {
  double loss = 0;
  int64_t correct = 0;
  for (int64_t i = threadIdx.x; i < rows; i += kThreads) {
    loss += of_rows[i].loss;
    correct += of_rows[i].correct;
  }
  loss = BlockReduce<Sum>(loss);
  correct = BlockReduce<Sum>(correct);
  if (threadIdx.x != 0) return;
  totals->loss = loss;
  totals->correct = correct;
}

template <typename T>
Error LaunchRows(cudaStream_t stream, const Arguments<T>& a) {
  return IsLongRow(a.classes)
             ? Launch(stream, BlocksWith(1, a.rows), dim3(kThreads), LossOfRow<T, kWarps>, a)
             : Launch(stream, BlocksWith(kWarps, a.rows), dim3(kThreads), LossOfRow<T, 1>, a);
}

}  // namespace

Error SoftmaxCrossEntropy(CudaDevice* device, const CrossEntropy& a, double* loss,
                          int64_t* correct) {
  const int64_t rows = a.logits.dims[0], classes = a.logits.dims[1];
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  // The totals of all rows stand behind those of each.
  CudaScratch labels(device), totals(device);
  RETURN_ERROR(labels.Reserve(static_cast<size_t>(rows) * sizeof(int32_t)));
  RETURN_ERROR(totals.Reserve(static_cast<size_t>(rows + 1) * sizeof(Totals)));
  RETURN_ERROR(device->SubmitCopyFromHost(labels.as<int32_t>(), a.labels,
                                          static_cast<size_t>(rows) * sizeof(int32_t)));
  Totals* const of_all = totals.as<Totals>() + rows;
  RETURN_ERROR(WithElements(a.logits.dtype, /*wide=*/false, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    const Arguments<T> arguments{static_cast<const T*>(a.logits.data),
                                 static_cast<T*>(a.dlogits.data),
                                 labels.as<int32_t>(),
                                 totals.as<Totals>(),
                                 rows,
                                 classes,
                                 static_cast<double>(a.batch_size)};
    return LaunchRows(stream, arguments);
  }));
  RETURN_ERROR(
      Launch(stream, dim3(1), dim3(kThreads), AddUpLosses, totals.as<Totals>(), rows, of_all));
  Totals result{};
  RETURN_ERROR(device->CopyToHost(&result, of_all, sizeof(result)));
  *loss = result.loss;
  *correct = result.correct;
  return Error{};
}

}  // namespace thinwire::cuda
