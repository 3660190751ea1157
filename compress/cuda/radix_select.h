// The K largest of scopes of many blocks each, by a radix select.
//
// Elements are ordered by a key of 63 bits: the magnitude, below it how far the element lies from
// the end of its scope, so that the first of equal ones is the largest and no two are equal. Each
// level looks at the next 10 or 11 bits of the keys within the range that the K-th largest is known
// to lie in: a histogram, the digit where the K-th falls, a narrower range. What lies above the
// range is kept, what lies below is dropped, and what lies in it stays a candidate.
//
// x is read twice as a whole, by the first level (11 bits) and by the one that finds the
// candidates; after that candidates alone, found by a bitmap of an n-th of 32 bits. Of smooth
// data these are some percent after the first level and next to none after the second. Levels of
// magnitudes: 11, 10 and 10 bits (bf16: 11 and 10); levels of places run only where equal
// magnitudes straddle the K-th, and read no more than the candidates either.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// As SubmitSelectInSmallScopes. Requires keys.elements >= kTileBits.
Error SubmitSelectInLargeScopes(CudaDevice* device, cudaStream_t stream, const Keys& keys,
                                const Choice& choice, uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
