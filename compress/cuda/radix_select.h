// Selection of the K largest of scopes of many blocks each, by a radix select.
//
// A sample of each scope's keys (key_guess.cuh) says where the K-th largest about lies. One look at
// all elements keeps those above that range, and makes candidates of those in it: for smooth data
// one or two percent, which a bitmap names. After that only candidates are read. Each round picks a
// narrower range (key_range.cuh), keeps the candidates above it and drops those below. Two rounds
// tell most magnitudes apart; further ones are needed where magnitudes that equal the K-th largest
// are not all kept. If the guess for some scope was wrong, all begin with a count of all elements.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Like SubmitSelectInSmallScopes. Requires keys.elements >= kTileBits / 2.
Error SubmitSelectInLargeScopes(CudaDevice* device, cudaStream_t stream, const Keys& keys,
                                const KeepRule& rule, uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
