// Selection of the K largest of scopes: small ones (select.cu), those of a block each
// (block_select.cu), and those of many blocks each (radix_select.cu).
#pragma once

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Returns how many words of a bitmap a scope touches: one more at each end unless all scopes begin
// at whole words.
inline int64_t WordsOfScope(int64_t elements) {
  return elements / 32 + (elements % 32 == 0 ? 0 : 2);
}
inline bool IsSmallScope(int64_t elements) { return WordsOfScope(elements) <= 256; }

// Sets the bits of kept elements in `kept`, a bitmap of zeros. Sets *nonfinite to 1 if there is a
// NaN or infinity, after which `kept` means nothing; `nonfinite` may be null. Requires
// IsSmallScope(keys.elements).
Error SubmitSelectInSmallScopes(CudaDevice* device, const Keys& keys, const KeepRule& rule,
                                uint32_t* kept, uint32_t* nonfinite);

// Returns true if there are enough scopes to fill the card, and none is so long that its second
// pass finds nothing in the cache.
inline bool IsScopeOfBlock(const Keys& keys, int multiprocessors) {
  constexpr int64_t kMostElements = int64_t{1} << 18;
  return keys.elements <= kMostElements && keys.total / keys.elements >= multiprocessors;
}

// Like SubmitSelectInSmallScopes. Requires keys.elements >= kTileBits / 2.
Error SubmitSelectInScopesOfBlocks(CudaDevice* device, const Keys& keys, const KeepRule& rule,
                                   uint32_t* kept, uint32_t* nonfinite);

// Like SubmitSelectInSmallScopes. Requires keys.elements >= kTileBits / 2.
Error SubmitSelectInLargeScopes(CudaDevice* device, const Keys& keys, const KeepRule& rule,
                                uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
