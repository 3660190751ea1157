// Where the tests of codec kernels make each call: on the CPU, and on the GPU under test.
#pragma once

#include "compress/cpu/kernels.h"
#include "tensor/cpu/device.h"

namespace thinwire {

struct Twin {
  Device* device = nullptr;
  CodecKernels* kernels = nullptr;
};

inline Twin CpuTwin() { return {CpuDevice(), CpuCodecKernels()}; }

// The same in every call. The test program links one of two definitions: that of
// emulated_twin_testing.cc, the emulated GPU, or that of backend/, any plugin's.
Twin GpuTwin();

}  // namespace thinwire
