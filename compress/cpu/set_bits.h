// Listing of set bits by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Set bits of [from, end), ascending, counted from the lowest bit of the first byte. They are
// listed 128 bytes at a time, because a vector finds many at once. The bytes outlive the object.
class SetBits {
 public:
  // Starts with these bytes; before that there are none.
  void Open(const uint8_t* from, const uint8_t* end) {
    from_ = from;
    end_ = end;
    first_ = next_first_ = 0;
    next_ = num_listed_ = 0;
  }

  // Returns how many set bits are listed and not yet skipped; lists more until there is one.
  // Requires that one is left.
  size_t size() {
    while (next_ == num_listed_) ListNextBytes();
    return num_listed_ - next_;
  }
  // Return parts of bit numbers: the i-th of these bits has the number first() + offsets()[i].
  uint64_t first() const { return first_; }
  const uint32_t* offsets() const { return listed_ + next_; }
  void Skip(size_t n) { next_ += n; }

 private:
  void ListNextBytes();

  static constexpr size_t kBytesAtOnce = 128;
  static constexpr size_t kSlack = 64;  // for whole vectors
  const uint8_t* from_ = nullptr;       // the next to be listed
  const uint8_t* end_ = nullptr;
  uint64_t first_ = 0;  // the number of the first bit that is listed
  uint64_t next_first_ = 0;
  size_t next_ = 0;
  size_t num_listed_ = 0;
  uint32_t listed_[8 * kBytesAtOnce + kSlack];
};

}  // namespace thinwire
