// Where entries stood, as bytes: one of the three codings of docs/compression.md, chosen and
// written on the device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

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

// The indices of at most `most` ascending entries below `size`, in device memory.
class IndexBytes {
 public:
  explicit IndexBytes(CudaDevice* device)
      : device_(device), fields_(device), flags_(device), sums_(device) {}

  // `bitmap`: that of the entries' indices, which outlives this, or null if it does not exist yet.
  Error Reserve(int64_t most, int64_t size, const uint32_t* bitmap);
  // Chooses the coding with the fewest bytes for entries[0, *count), writes them, and what *plan
  // has besides the first two.
  Error Submit(cudaStream_t stream, const uint32_t* entries, const uint64_t* count,
               EntriesPlan* plan);

  // The bytes of the payload, as many as the plan says once it is read.
  const void* fields() const { return fields_.as<void>(); }
  const void* flags(IndexCoding coding) const {
    const bool is_there = coding == IndexCoding::kBitmap && bitmap_ != nullptr;
    return is_there ? bitmap_ : flags_.as<void>();
  }

 private:
  CudaDevice* const device_;
  int64_t most_ = 0, size_ = 0;
  const uint32_t* bitmap_ = nullptr;
  size_t bytes_ = 0;  // of the longest indices, in whole words
  CudaScratch fields_, flags_;
  CudaScratch sums_;  // of quotients, per candidate for Rice's k and tile of entries
};

}  // namespace thinwire
