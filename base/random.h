// Counter-based random numbers: the i-th number of a key is a pure function of (key, i), so any
// thread or process can draw any of them in any order and no generator state exists.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace thinwire {

// A 64-bit key from a seed and a name ("layer1.0.conv1.weight", "shuffle", ...). Stable for ever:
// results of runs depend on it.
uint64_t RandomKey(uint64_t seed, std::string_view name);

// Derives the key of one event, e.g. (key of "augment", epoch, sample).
uint64_t RandomKey(uint64_t key, uint64_t a, uint64_t b = 0);

// Philox4x32-10 (Salmon et al., SC 2011): four independent 32-bit numbers of (key, counter).
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter);

// The numbers of one key in order: block i / 4, lane i % 4 of Philox.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key) : key_(key) {}
  uint32_t Next();
  // Uniform in [0, 1): 24 bits.
  float NextFloat() { return static_cast<float>(Next() >> 8) * 0x1p-24f; }
  // Uniform in [0, bound), without bias (rejection). Requires bound > 0.
  uint32_t Below(uint32_t bound);

 private:
  uint64_t key_;
  uint64_t index_ = 0;
  std::array<uint32_t, 4> block_{};
};

}  // namespace thinwire
