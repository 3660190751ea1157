// Codec ecsq: every element as a whole number of steps, each a multiple of its scope's root mean
// square.
#pragma once

#include "compress/cuda/codec.h"

namespace thinwire {

CudaEncode CudaEcsqEncode;
CudaDecode CudaEcsqDecode;

}  // namespace thinwire
