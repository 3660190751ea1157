// Work that the layers of an Ops put off between JoinWeights and FinishWeights, to do it for many
// at once.
#pragma once

#include "nn/cuda/column_sums.h"
#include "nn/cuda/filter.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Not thread-safe.
struct JoinedWork {
  explicit JoinedWork(CudaDevice* device) : filters(device), sums(device) {}

  void Join() {
    filters.Join();
    sums.Join();
  }
  Error Finish() {
    const Error of_filters = filters.Finish();
    const Error of_sums = sums.Finish();
    return of_filters.ok() ? of_sums : of_filters;
  }

  Filters filters;
  ColumnSums sums;
};

}  // namespace thinwire::cuda
