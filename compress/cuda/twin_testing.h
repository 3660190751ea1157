// Twins on which tests of codec kernels make each call: the CPU, and the GPU under test.
#pragma once

#include "compress/cpu/kernels.h"
#include "tensor/cpu/device.h"

namespace thinwire {

struct Twin {
  Device* device = nullptr;
  CodecKernels* kernels = nullptr;
};

inline Twin CpuTwin() { return {CpuDevice(), CpuCodecKernels()}; }

// Returns the GPU's twin, the same in every call. The test program links one of two definitions:
// the emulated GPU of emulated_twin_testing.cc, or any plugin's of backend/.
Twin GpuTwin();

}  // namespace thinwire
