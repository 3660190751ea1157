// Permutations of any number of items that take little memory.
#pragma once

#include <cstdint>
#include <vector>

namespace thinwire {

// A permutation of [0, size) as if by chance, which is a function of its key. Up to kMostListed
// items are shuffled in a list; of more, each is computed when it is asked for. Immutable and
// thread-safe.
class Permutation {
 public:
  static constexpr int64_t kMostListed = int64_t{1} << 22;

  Permutation() = default;  // of nothing
  // `size` is at most 2^56.
  Permutation(uint64_t key, int64_t size);

  int64_t size() const { return size_; }
  // Returns the item at a place in [0, size).
  int64_t operator[](int64_t place) const;

 private:
  // Permutes [0, 4^half_bits_), in which the items are, by a network of Feistel's (Luby and
  // Rackoff, 1988).
  uint64_t Encrypted(uint64_t number) const;

  int64_t size_ = 0;
  uint64_t key_ = 0;
  int half_bits_ = 0;
  std::vector<uint32_t> listed_;  // empty beyond kMostListed
};

}  // namespace thinwire
