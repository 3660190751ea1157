// Writer of a decoded tensor that is zero except for some elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compress/bytes.h"
#include "compress/cpu/values.h"
#include "compress/half.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Writes elements of x[begin, end) in ascending order and zeros between them.
class SparseWriter {
 public:
  SparseWriter(const TensorView& x, int64_t begin, int64_t end)
      : data_(static_cast<uint8_t*>(x.data)), size_(SizeOf(x.dtype)), written_(begin), end_(end) {}

  // Writes n > 0 values at these positions, and zeros up to the last of them.
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
  // Writes zeros up to the end.
  void Finish() { ZeroUpTo(end_); }

 private:
  void ZeroUpTo(int64_t end) {
    if (end > written_) std::memset(data_ + written_ * size_, 0, (end - written_) * size_);
    written_ = end;
  }

  uint8_t* data_;
  int64_t size_;
  int64_t written_;  // elements before this are written
  int64_t end_;
};

// Number of entries written at once: they and the zeros around them stay in the cache.
constexpr size_t kEntriesAtOnce = 512;

// Overwrites all of x: the next `count` of `values` go to the ascending `positions`, which are
// below x.elements(), zeros elsewhere. InvalidArgument if a value is not finite.
Error WriteSparse(const uint32_t* positions, size_t count, const ValueReader& values, int threads,
                  const TensorView& x);

}  // namespace thinwire
