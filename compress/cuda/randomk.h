// randomk: of each scope the elements with the highest random draws of a seed's stream.
#pragma once

#include "compress/cuda/codec.h"

namespace thinwire {

CudaEncode CudaRandomKEncode;
CudaDecode CudaRandomKDecode;

}  // namespace thinwire
