// The K largest of scopes of which a block has one: for so many that their blocks fill the card.
//
// Keys are those of radix_select.h, and so is the search: a histogram of the next 11 bits of the
// keys in the range that the K-th largest is known to lie in, a narrower range. One block counts,
// chooses and goes on alone, until the range has as few keys as shared memory holds: of most data
// after one pass over x. A second pass, which finds most of x in the cache, marks what lies above
// the range and lists what lies in it; the list decides the rest.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/error.h"

namespace thinwire {

// Whether there are so many scopes, none so long that its second pass finds nothing in the cache.
inline bool IsScopeOfBlock(const Keys& keys, int multiprocessors) {
  constexpr int64_t kMostElements = int64_t{1} << 18;
  return keys.elements <= kMostElements && keys.total / keys.elements >= multiprocessors;
}

// As SubmitSelectInSmallScopes. Requires keys.elements >= kTileBits / 2.
Error SubmitSelectInScopesOfBlocks(cudaStream_t stream, const Keys& keys, const KeepRule& rule,
                                   uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
