// For tests of kernels that no Ops function shows by itself: a device of the test program's own,
// beside the backend under test.
#pragma once

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"
#include "tensor/cuda/device.h"

namespace thinwire {

inline CudaDevice* OwnDevice() {
  static CudaDevice* const device = [] {
    CudaDevice* opened = nullptr;
    const Error error = NewCudaDevice(/*index=*/0, &opened);
    EXPECT_TRUE(error.ok()) << error.message;
    return opened;
  }();
  return device;
}

// Returns that device as a Side without an Ops.
inline Side OwnSide(int64_t misaligned = 0) { return Side(OwnDevice(), nullptr, misaligned); }

}  // namespace thinwire
