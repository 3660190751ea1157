// Selection of the K largest of scopes of many blocks each, by a radix select.
//
// Elements are ordered by a key of 63 bits: the magnitude, and below it how far the element lies
// from the end of its scope. So the first of equal magnitudes is the largest, and no two keys are
// equal. Each level looks at the next 9 to 12 bits of the keys within the range that holds the K-th
// largest: a histogram, the digit where the K-th falls, a narrower range. What lies above the range
// is kept, what lies below is dropped, and what lies in it remains a candidate.
//
// x is read twice as a whole: for the first level's histogram, and to find the candidates that it
// leaves. After that only candidates are read, which a bitmap names: for smooth data some percent
// of all after the first level (12 bits) and next to none after the second. Levels of magnitudes
// have 12, 10 and 9 bits (bf16: 12 and 10). Levels of indices are launched only if magnitudes that
// equal the K-th largest are not all kept.
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
