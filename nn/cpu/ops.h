// The CPU backend: oneDNN for convolutions and matrix products, own SIMD kernels for all else.
#pragma once

#include <memory>

#include "nn/ops.h"

namespace thinwire {

// Makes ops that compute with `threads` >= 1 OpenMP threads, whichever thread calls, on host
// memory.
std::unique_ptr<Ops> NewCpuOps(int threads);

// Returns the instruction set that oneDNN will use ("avx512_core_amx", ...), for run records.
const char* CpuInstructionSet();

}  // namespace thinwire
