// Selection of the K largest of scopes that one warp or one block holds in its registers.
//
// x is read once. The K-th largest magnitude is found bit by bit from the highest: a bit stays set
// if at least K elements are that large. It ends when exactly K are left.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/error.h"

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
Error SubmitSelectInSmallScopes(cudaStream_t stream, const Keys& keys, const KeepRule& rule,
                                uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
