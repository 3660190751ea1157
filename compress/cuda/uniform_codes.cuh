// Codes of uniform in a kernel: rounding to the grid, and the words in which they are packed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cpu/range_line.h"
#include "compress/cuda/extremes.h"
#include "compress/cuda/pack.cuh"
#include "compress/cuda/philox.cuh"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

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

struct Grid {
  uint32_t bits;
  UniformGrid codes;
};

// Rounds values y from -255 to 255 to codes (compress/cpu/quantize.h), without adding the zero
// code.
struct ToNearest {
  struct Numbers {};
  __device__ Numbers Of(int64_t) const { return {}; }
  // From 2^23 on, floats are integers, and a sum rounds to nearest, ties to even: what y adds to
  // the bits is its integer.
  __device__ uint32_t operator()(float y, const Numbers&, int) const {
    return __float_as_uint(y + 0x1.8p23f) - __float_as_uint(0x1.8p23f);
  }
};
struct ByChance {
  uint64_t key;
  struct Numbers {
    uint32_t of[4];
  };
  // Returns the random numbers of the four elements at i.
  __device__ Numbers Of(int64_t i) const {
    Numbers numbers;
    PhiloxNumbers(key, i / 4, numbers.of);
    return numbers;
  }
  __device__ uint32_t operator()(float y, const Numbers& numbers, int k) const {
    const float whole = floorf(y);
    const float chance = static_cast<float>(numbers.of[k] >> 8) * 0x1p-24f;
    return static_cast<uint32_t>(static_cast<int32_t>(chance < y - whole ? whole + 1.0f : whole));
  }
};

// Returns an element on the grid, before it is rounded.
__device__ inline float OnGrid(float x, const EncodeLine& line, const Grid& grid) {
  const float least = static_cast<float>(-grid.codes.zero_code);
  const float most = static_cast<float>(grid.codes.max_code - grid.codes.zero_code);
  const float mapped = ((x - line.offset) * line.lift) * line.inverse;
  return fminf(fmaxf(mapped, least), most);
}

// Returns the packed codes of the four elements at i, of which `left` are in the tensor. A cursor
// (lines.cuh) gives their lines.
template <typename Round, typename Cursor>
__device__ uint32_t EncodedFour(const float (&v)[4], int64_t i, int left, const Grid& grid,
                                const Round& round, Cursor* cursor) {
  const auto numbers = round.Of(i);
  uint32_t piece = 0;
  cursor->ForEach(left, [&](int k, const EncodeLine& line) {
    const uint32_t code = round(OnGrid(v[k], line, grid), numbers, k) + grid.codes.zero_code;
    piece |= code << (k * grid.bits);
  });
  if (left < 4) piece &= (1u << (left * grid.bits)) - 1;
  cursor->Advance();
  return piece;
}

// Stores the word of codes that this thread has, given its piece, which begins with element i.
// Whole warps call it.
__device__ inline void StoreCodes(const CodeWords& words, const WarpPacker& packer, int64_t i,
                                  uint32_t piece) {
  const uint32_t word = packer.Pack(piece);
  const int64_t index = packer.WordIndex(i);
  if (packer.HasWord() && index < words.count) words.words[index] = word;
}

// Returns true if scopes are whole tiles, fit into the cache beside each other, and fill the card.
// Under fixed_point a scope's codes depend on all scopes.
bool AreScopesOfBlocks(const TensorView& x, const CodecSpec& spec, const Scopes& scopes,
                       int multiprocessors);

// Encodes with a block per scope. A scope is still in the cache when the block, which has looked
// for its extremes, reads it again to encode it. Writes the codes, and the extremes from which
// ranges follow (ranges.cuh). Only launches a kernel.
Error SubmitUniformScopes(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                          uint64_t random_key, const Scopes& scopes, Extremes* extremes,
                          const CodeWords& words);

}  // namespace thinwire
