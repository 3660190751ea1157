// Bitmaps over elements, in device memory. Element i is bit i % 32 of word i / 32, as in the 64-bit
// words of a SupportView. Unused bits are zero, up to a whole 64-bit word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

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
Error SubmitTileOffsets(CudaDevice* device, const uint32_t* words, int64_t bits, uint64_t* offsets);

// Bitmap over elements with its tile offsets, in device memory. Null words stand for all ones.
struct RankedBits {
  const uint32_t* words = nullptr;
  const uint64_t* offsets = nullptr;
};

// Bitmap with memory for its tile offsets, until what was submitted has used them.
class RankedBitmap {
 public:
  explicit RankedBitmap(CudaDevice* device) : device_(device), offsets_(device) {}

  // Counts the set bits of `words`, which stay; null words have no offsets. Only launches kernels.
  Error Submit(const uint32_t* words, int64_t bits) {
    if (words == nullptr) return Error{};
    RETURN_ERROR(offsets_.Reserve(TileOffsetsBytes(bits)));
    bits_ = {words, offsets_.as<uint64_t>()};
    count_ = bits_.offsets + NumTiles(bits);
    return SubmitTileOffsets(device_, words, bits, offsets_.as<uint64_t>());
  }
  const RankedBits& bits() const { return bits_; }
  // Returns the number of set bits, in device memory.
  const uint64_t* count() const { return count_; }

 private:
  CudaDevice* const device_;
  CudaScratch offsets_;
  RankedBits bits_;
  const uint64_t* count_ = nullptr;
};

// Sets counts[s], in device memory, to the number of set bits of scope s in a bitmap over
// scopes.total elements.
Error SubmitScopeCounts(CudaDevice* device, const RankedBits& bits, const Scopes& scopes,
                        uint32_t* counts);

// Sets *fault, in device memory, to 1 if one of counts[0, n) is above `most`.
Error SubmitMostCheck(CudaDevice* device, const uint32_t* counts, int64_t n, int64_t most,
                      uint32_t* fault);

}  // namespace thinwire
