// Selection of the K largest of scopes, a block per scope, if there are enough scopes for their
// blocks to fill the card.
//
// Keys and the search are those of radix_select.h: a histogram of the next 11 bits of the keys
// within the range that holds the K-th largest, then a narrower range. One block counts, chooses
// and goes on alone, until shared memory can hold the keys of the range; for most data that is
// after one pass over x. A second pass, which finds most of x in the cache, marks what lies above
// the range and lists what lies in it. The list decides the rest.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/error.h"

namespace thinwire {

// Returns true if there are enough scopes to fill the card, and none is so long that its second
// pass finds nothing in the cache.
inline bool IsScopeOfBlock(const Keys& keys, int multiprocessors) {
  constexpr int64_t kMostElements = int64_t{1} << 18;
  return keys.elements <= kMostElements && keys.total / keys.elements >= multiprocessors;
}

// Like SubmitSelectInSmallScopes. Requires keys.elements >= kTileBits / 2.
Error SubmitSelectInScopesOfBlocks(cudaStream_t stream, const Keys& keys, const KeepRule& rule,
                                   uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
