// A decoded tensor that is zero but for some of its elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compress/cpu/bytes.h"
#include "compress/cpu/half.h"
#include "tensor/tensor.h"

namespace thinwire {

// Writes elements in ascending order and zeros between them.
class SparseWriter {
 public:
  explicit SparseWriter(const TensorView& x)
      : data_(static_cast<uint8_t*>(x.data)), size_(SizeOf(x.dtype)), total_(x.elements()) {}

  // Requires n > 0.
  void Write(const uint32_t* positions, const float* values, size_t n) {
    ZeroUpTo(static_cast<int64_t>(positions[n - 1]) + 1);
    uint8_t* const data = data_;  // a local: the stores below may not alias it
    if (size_ == 4) {
      for (size_t i = 0; i < n; ++i) StoreAs(values[i], data + 4 * uint64_t{positions[i]});
    } else {
      for (size_t i = 0; i < n; ++i) {
        StoreAs(ToBFloat(values[i]), data + 2 * uint64_t{positions[i]});
      }
    }
  }
  void Finish() { ZeroUpTo(total_); }

 private:
  void ZeroUpTo(int64_t end) {
    if (end > written_) std::memset(data_ + written_ * size_, 0, (end - written_) * size_);
    written_ = end;
  }

  uint8_t* data_;
  int64_t size_;
  int64_t total_;
  int64_t written_ = 0;
};

}  // namespace thinwire
