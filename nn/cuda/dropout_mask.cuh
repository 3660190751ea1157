// Computes DropoutMask (nn/dropout_mask.h has the definition) in a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire::cuda {

// Parameters of the masks of a batch's samples.
struct DropoutMasks {
  uint64_t key = 0;
  int64_t first_sample = 0;
  uint32_t dropped = 0;  // dropped values among 2^24; 0: nothing is dropped
  float scale = 1;       // factor of what is kept: 1 / (1 - rate)
};

inline DropoutMasks MasksOf(uint64_t key, int64_t first_sample, float rate) {
  return {key, first_sample, static_cast<uint32_t>(rate * 0x1p24f + 0.5f), 1.0f / (1.0f - rate)};
}

// The mask of one sample's elements.
class SampleMask {
 public:
  __device__ SampleMask(const DropoutMasks& masks, int64_t sample) : dropped_(masks.dropped) {
    if (dropped_ == 0) return;
    const uint64_t words =
        Spread(Spread(masks.key ^ Spread(static_cast<uint64_t>(masks.first_sample + sample))));
    low_ = static_cast<uint32_t>(words);
    high_ = static_cast<uint32_t>(words >> 32);
  }

  // Returns what DropoutMask::Keeps returns; without dropout it keeps everything.
  __device__ bool Keeps(uint32_t element) const {
    return dropped_ == 0 || Mixed(Mixed(element ^ low_) + high_) >> 8 >= dropped_;
  }

 private:
  // Applies SplitMix64's finaliser, with which base/random.h makes the key of a sample.
  __device__ static uint64_t Spread(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  __device__ static uint32_t Mixed(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }

  uint32_t low_ = 0, high_ = 0, dropped_;
};

}  // namespace thinwire::cuda
