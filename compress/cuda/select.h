// The K largest of scopes that one warp or one block holds in its registers.
//
// x is read once. The K-th largest magnitude is found bit by bit from the highest, keeping each bit
// that leaves at least K elements, until exactly K are left.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/error.h"

namespace thinwire {

// Words of a bitmap that a scope touches: one more at each end unless all begin at whole words.
inline int64_t WordsOfScope(int64_t elements) {
  return elements / 32 + (elements % 32 == 0 ? 0 : 2);
}
inline bool IsSmallScope(int64_t elements) { return WordsOfScope(elements) <= 256; }

// Sets the bits of what is kept in `kept`, a bitmap of zeros, and unless that is null *nonfinite to
// 1 if there is a NaN or infinity: what is kept then means nothing. Requires
// IsSmallScope(keys.elements).
Error SubmitSelectInSmallScopes(cudaStream_t stream, const Keys& keys, const KeepRule& rule,
                                uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
