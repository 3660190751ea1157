// Codec kernels on the CPU: the definition that every other backend has to match.
#pragma once

#include <memory>

#include "compress/kernels.h"

namespace thinwire {

// Returns the kernels for tensors in host memory. They run on the calling thread, and any thread
// may call them, several at once; each thread keeps the scratch memory of its largest message.
// Never destroyed.
CodecKernels* CpuCodecKernels();

// Returns kernels that give the same bytes and bits with `threads` > 0 threads on each tensor of
// more than 1 MiB of fp32 (or as many elements of bf16), except for low_rank. The threads are
// OpenMP's: the calling thread and those with which it computes layers.
std::unique_ptr<CodecKernels> NewCpuCodecKernels(int threads);

}  // namespace thinwire
