// Counter-based random numbers. The i-th number of a key is a pure function of (key, i), so any
// thread or process can draw any number in any order, and there is no generator state.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace thinwire {

// Returns a 64-bit key for a seed and a name ("layer1.0.conv1.weight", "shuffle", ...). Must never
// change, as results of runs depend on it.
uint64_t RandomKey(uint64_t seed, std::string_view name);

// Returns the key of one event, e.g. (key of "augment", epoch, sample).
uint64_t RandomKey(uint64_t key, uint64_t a, uint64_t b = 0);

// Returns four independent 32-bit numbers of (key, counter): Philox4x32-10 (Salmon et al., SC
// 2011).
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter);

// The numbers of one key in order: number i is lane i % 4 of Philox block i / 4.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key) : key_(key) {}
  uint32_t Next();
  // Returns a number uniform in [0, 1), with 24 bits.
  float NextFloat() { return static_cast<float>(Next() >> 8) * 0x1p-24f; }
  // Returns a number uniform in [0, bound), without bias (by rejection). Requires bound > 0.
  uint32_t Below(uint32_t bound);

 private:
  uint64_t key_;
  uint64_t index_ = 0;
  std::array<uint32_t, 4> block_{};
};

}  // namespace thinwire
