// Lists of entries by blocks: each takes tiles of them, as many of which hold entries as a count in
// device memory says.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire {

constexpr int kEntryThreads = 256;
constexpr int kEntriesEach = 8;  // neighbours of one thread
constexpr int kEntryTile = kEntryThreads * kEntriesEach;

__host__ __device__ inline int64_t NumEntryTiles(int64_t entries) {
  return (entries + kEntryTile - 1) / kEntryTile;
}

// Sets bits of zeros that others set too; quick where neighbours in a word come one after the
// other.
class BitCollector {
 public:
  __device__ explicit BitCollector(uint32_t* words) : words_(words) {}
  __device__ void Set(uint64_t bit) {
    if (bit / 32 != word_) {
      Finish();
      word_ = bit / 32;
      bits_ = 0;
    }
    bits_ |= 1u << (bit % 32);
  }
  __device__ void Finish() const {
    if (bits_ != 0) atomicOr(&words_[word_], bits_);
  }

 private:
  uint32_t* words_;
  uint64_t word_ = 0;
  uint32_t bits_ = 0;
};

}  // namespace thinwire
