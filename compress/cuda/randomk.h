// Codec randomk: keeps the elements of each scope with the highest random draws of a seed's stream.
#pragma once

#include "compress/cuda/codec.h"

namespace thinwire {

CudaEncode CudaRandomKEncode;
CudaDecode CudaRandomKDecode;

}  // namespace thinwire
