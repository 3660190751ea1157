// Selection of the K largest of scopes, a block per scope, if there are enough scopes for their
// blocks to fill the card.
//
// A guess (key_guess.cuh) says about where the K-th largest lies. One look at all keys marks what
// lies above that range and lists, in shared memory, what lies in it; the list decides the rest
// (key_range.cuh). If the guess was wrong, or the list has no room, the block counts the digits of
// all keys, until it knows a range that the list can hold, and then marks and lists by that.
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
