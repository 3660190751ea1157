// The codec kernels on the CPU: the definition that every other backend has to match.
#pragma once

#include "compress/kernels.h"

namespace thinwire {

// For tensors in host memory. Single-threaded, from any thread, several at once; each thread keeps
// the scratch memory of its largest message. Never destroyed.
CodecKernels* CpuCodecKernels();

}  // namespace thinwire
