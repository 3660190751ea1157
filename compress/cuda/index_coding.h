// Where entries stood, as bytes: one of the three codings of docs/compression.md, chosen and
// written on the device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "compress/cuda/entry_list.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// In device memory until the payload's length is known; then the host reads it. The first two are
// zero before.
struct EntriesPlan {
  uint32_t nonfinite;     // 1: the tensor holds NaN or infinity and the rest means nothing
  uint32_t largest;       // bits of the largest magnitude kept
  uint32_t count;         // entries
  uint32_t coding;        // an IndexCoding
  uint64_t rice_bits;     // of each gap's remainder; 0 under other codings
  uint64_t fields_bytes;  // of packed indices, or of Rice's remainders
  uint64_t flags_bytes;   // of the bitmap, or of Rice's quotients, which follow
};

// The indices of at most `most` entries, in device memory.
class IndexBytes {
 public:
  explicit IndexBytes(CudaDevice* device)
      : fields_(device),
        flags_(device),
        sums_(device),
        zeros_(device),
        listed_(device),
        listed_offsets_(device) {}

  // Indices are below `size`: elements, or ranks among those with support.
  Error Reserve(int64_t most, int64_t size, bool are_ranks);
  // Chooses the coding with the fewest bytes for the bits of `kept`, over `elements`, all of which
  // have support; writes them, and what *plan has besides the first two. Without words `support` is
  // of all. Launches only; `kept` stays.
  Error Submit(cudaStream_t stream, const RankedBits& kept, int64_t elements,
               const RankedBits& support, EntriesPlan* plan);

  // The bytes of the payload, as many as the plan says once it is read.
  const void* fields() const { return fields_.as<void>(); }
  const void* flags(IndexCoding coding) const {
    return coding == IndexCoding::kBitmap ? bits_.words : flags_.as<void>();
  }

 private:
  // Makes bits_ those of ranks.
  Error SubmitRanks(cudaStream_t stream, int64_t elements, const RankedBits& support);

  int64_t size_ = 0;
  size_t bytes_ = 0;  // of the longest indices, in whole words
  RankedBits bits_;   // over indices
  CudaScratch fields_, flags_;
  CudaScratch sums_;   // of quotients, per candidate for Rice's k and tile of the bitmap
  CudaScratch zeros_;  // of quotients, before each tile
  CudaScratch listed_, listed_offsets_;  // of ranks
};

}  // namespace thinwire
