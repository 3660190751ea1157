// Encoding of uniform with a block per scope. A scope is still in the cache when the block, which
// has looked for its extremes, reads it again to encode it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/extremes.h"
#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Words of packed codes, in device memory.
struct CodeWords {
  uint32_t* words;
  int64_t count;
};

inline int64_t NumCodeWords(const CodecSpec& spec, const Scopes& scopes) {
  return (spec.bits * scopes.total + 31) / 32;
}
// Returns those of a payload in device memory.
inline CodeWords CodeWordsOf(const CodecSpec& spec, const Scopes& scopes, uint8_t* payload) {
  return {reinterpret_cast<uint32_t*>(payload + UniformHeaderBytes(spec, scopes)),
          NumCodeWords(spec, scopes)};
}

// Returns true if scopes are whole tiles, fit into the cache beside each other, and fill the card.
// Under fixed_point a scope's codes depend on all scopes.
bool AreScopesOfBlocks(const TensorView& x, const CodecSpec& spec, const Scopes& scopes,
                       int multiprocessors);

// Writes the codes, and the extremes from which ranges follow (ranges.h). Only launches a kernel.
Error SubmitUniformScopes(cudaStream_t stream, const TensorView& x, const CodecSpec& spec,
                          uint64_t random_key, const Scopes& scopes, Extremes* extremes,
                          const CodeWords& words);

}  // namespace thinwire
