// Codec uniform with rotation: uniform on a tensor that was rotated first.
#pragma once

#include "compress/cuda/codec.h"

namespace thinwire {

CudaEncode CudaRotatedUniformEncode;
CudaDecode CudaRotatedUniformDecode;

}  // namespace thinwire
