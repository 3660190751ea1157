// Coding of the places of entries as bytes: one of the three codings of docs/compression.md, chosen
// and written on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cuda/entry_list.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Coding of one payload, in device memory; the host reads it to learn the payload's length. The
// first two members are zero before.
struct EntriesPlan {
  uint32_t nonfinite;     // 1: the tensor holds NaN or infinity and the rest means nothing
  uint32_t largest;       // bits of the largest magnitude kept
  uint32_t count;         // number of entries
  uint32_t coding;        // an IndexCoding
  uint64_t rice_bits;     // of each gap's remainder; 0 under other codings
  uint64_t fields_bytes;  // of packed indices, or of Rice's remainders
  uint64_t flags_bytes;   // of the bitmap, or of Rice's quotients, which follow
};

// Indices of at most `most` entries, in device memory.
class IndexBytes {
 public:
  explicit IndexBytes(CudaDevice* device) : device_(device) {}

  // Reserves memory. Indices are below `size`: indices of elements or, if `are_ranks`, ranks among
  // the elements with support.
  Error Reserve(int64_t most, int64_t size, bool are_ranks);
  // Chooses the coding with the fewest bytes for the set bits of `kept`, over `elements` elements,
  // all of which have support. Writes the indices, and *plan except its first two members. If
  // `support` has no words, all elements have support. Only launches kernels; `kept` stays.
  Error Submit(const RankedBits& kept, int64_t elements, const RankedBits& support,
               EntriesPlan* plan);

  // Bytes of the payload; the plan, once it is read, says how many.
  const void* fields() const { return fields_.as<void>(); }
  const void* flags(IndexCoding coding) const {
    return coding == IndexCoding::kBitmap ? bits_.words : flags_.as<void>();
  }

 private:
  // Sets bits_ to the bitmap of ranks.
  Error SubmitRanks(int64_t elements, const RankedBits& support);

  CudaDevice* const device_;
  int64_t size_ = 0;
  size_t bytes_ = 0;  // bytes of the longest indices, in whole words
  RankedBits bits_;   // over indices
  CudaScratch fields_{device_}, flags_{device_};
  CudaScratch sums_{device_};    // of quotients, per candidate for Rice's k and tile of the bitmap
  CudaScratch zeros_{device_};   // zeros of quotients before each tile
  CudaScratch listed_{device_};  // bitmap of ranks
  RankedBitmap ranked_{device_};
};

}  // namespace thinwire
