// Parts shared by the kernels of ecsq's encoder and decoder.
#pragma once

#include <cstdint>

#include "compress/cuda/philox.cuh"

namespace thinwire {

// Random numbers of the four elements from i on.
struct Numbers {
  uint32_t of[4] = {};
  __device__ Numbers(bool are_needed, uint64_t key, int64_t i) {
    if (are_needed) PhiloxNumbers(key, static_cast<uint64_t>(i) / 4, of);
  }
  // Returns number k, which is known only at run time. Selecting it by conditions keeps `of` in
  // registers; an index would need local memory.
  __device__ uint32_t At(int64_t k) const {
    const uint32_t low = (k & 1) != 0 ? of[1] : of[0], high = (k & 1) != 0 ? of[3] : of[2];
    return (k & 2) != 0 ? high : low;
  }
};

}  // namespace thinwire
