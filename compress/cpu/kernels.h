// The codec kernels on the CPU: the definition that every other backend has to match.
#pragma once

#include <memory>

#include "compress/kernels.h"

namespace thinwire {

// For tensors in host memory. Single-threaded, from any thread, several at once; each thread keeps
// the scratch memory of its largest message. Never destroyed.
CodecKernels* CpuCodecKernels();

// The same bytes and bits, with `threads` > 0 threads at work on each tensor of more than 1 MiB of
// fp32 (as many elements of bf16), but for low_rank's. They are OpenMP's: the calling thread and
// those it computes layers with.
std::unique_ptr<CodecKernels> NewCpuCodecKernels(int threads);

}  // namespace thinwire
