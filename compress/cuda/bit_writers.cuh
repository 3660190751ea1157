// Bits that several threads put into words of zeros, each thread ascending ones.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire {

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

// Fields one behind the other, the first in the lowest bits.
class FieldWriter {
 public:
  // The first field begins at `bit`.
  __device__ FieldWriter(uint32_t* words, uint64_t bit)
      : words_(words + bit / 32), filled_(static_cast<uint32_t>(bit % 32)) {}
  // The lowest `width` <= 32 bits of value.
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
  uint32_t filled_;  // of the lowest 32 bits
};

}  // namespace thinwire
