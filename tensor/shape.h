// The extents of a tensor, outermost first; the last axis is contiguous. The batch comes first.
// Images are channels-last, [batch, height, width, channels]; sequences are [batch, seq, hidden].
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace thinwire {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t dim : dims) Append(dim);
  }

  void Append(int64_t dim) {
    assert(rank_ < kMaxRank && dim >= 0);
    dims_[rank_++] = dim;
  }
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t dim : *this) n *= dim;
    return n;
  }
  // Returns this shape with another extent of axis `axis`.
  Shape With(int axis, int64_t extent) const {
    assert(axis < rank_);
    Shape s = *this;
    s.dims_[axis] = extent;
    return s;
  }
  // Returns this shape for another number of samples: the first extent is replaced.
  Shape WithBatch(int64_t batch) const { return With(0, batch); }
  // Returns, for example, "[100, 32, 32, 16]".
  std::string ToString() const {
    std::string text = "[";
    for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(dims_[i]);
    return text + "]";
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace thinwire
