// The CPU backend: oneDNN for convolutions and matrix products, own SIMD kernels for the rest.
#pragma once

#include <memory>

#include "nn/ops.h"

namespace thinwire {

// Computes with `threads` >= 1 OpenMP threads, whichever thread calls. Works on host memory.
std::unique_ptr<Ops> NewCpuOps(int threads);

// "avx512_core_amx", ...: what oneDNN will use, for run records.
const char* CpuInstructionSet();

}  // namespace thinwire
