// Bitmaps over elements, in device memory. Element i is bit i % 32 of word i / 32, as in the 64-bit
// words of a SupportView. Unused bits are zero, up to a whole 64-bit word.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"
#include "tensor/error.h"

namespace thinwire {

// Tile of one block: a word for each of its threads.
constexpr int kTileWords = 256;
constexpr int64_t kTileBits = 32 * kTileWords;

__host__ __device__ inline int64_t NumWords(int64_t bits) { return (bits + 63) / 64 * 2; }
inline int64_t NumTiles(int64_t bits) { return (bits + kTileBits - 1) / kTileBits; }
inline size_t BitmapBytes(int64_t bits) { return 4 * static_cast<size_t>(NumWords(bits)); }

// Returns the support's words; null for null.
inline const uint32_t* WordsOf(const SupportView* support) {
  return support == nullptr ? nullptr : reinterpret_cast<const uint32_t*>(support->words);
}

// Sets offsets[t] to the number of set bits before tile t, for t = 0 to NumTiles(bits): the last is
// the number of all.
inline size_t TileOffsetsBytes(int64_t bits) { return 8 * static_cast<size_t>(NumTiles(bits) + 1); }
Error SubmitTileOffsets(cudaStream_t stream, const uint32_t* words, int64_t bits,
                        uint64_t* offsets);

}  // namespace thinwire
