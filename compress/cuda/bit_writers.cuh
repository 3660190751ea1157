// Writers of bits into words of zeros by several threads, each of which writes ascending bits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire {

// Sets bits in words that other threads write too. Bits of one word are collected in a register, so
// that consecutive bits of a word cost one atomic operation.
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

// Writes fields one after the other, the first in the lowest bits.
class FieldWriter {
 public:
  // Starts writing at bit `bit` of `words`.
  __device__ FieldWriter(uint32_t* words, uint64_t bit)
      : words_(words + bit / 32), filled_(static_cast<uint32_t>(bit % 32)) {}
  // Appends the lowest `width` <= 32 bits of value.
  __device__ void Append(uint32_t value, uint32_t width) {
    bits_ |= (value & ((uint64_t{1} << width) - 1)) << filled_;
    filled_ += width;
    if (filled_ < 32) return;
    Finish();
    ++words_;
    bits_ >>= 32;
    filled_ -= 32;
  }
  __device__ void Finish() const {
    const auto low = static_cast<uint32_t>(bits_);
    if (low != 0) atomicOr(words_, low);
  }

 private:
  uint32_t* words_;
  uint64_t bits_ = 0;
  uint32_t filled_;  // how many of the lowest 32 bits of bits_ are in use
};

}  // namespace thinwire
