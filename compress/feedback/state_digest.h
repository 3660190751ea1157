// One 64-bit number for the state of all rows of a message, from which the other end can tell which
// row differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace thinwire {

// Two sums modulo the prime p = 2^32 - 5 over the rows' digests h_i, i from 1: sum h_i in the upper
// half and sum i h_i in the lower. If row j alone differs, by d, the sums differ by d and by j d.
class StateDigest {
 public:
  void Add(uint64_t row_digest);
  uint64_t value() const { return sum_ << 32 | weighted_; }

 private:
  uint64_t rows_ = 0, sum_ = 0, weighted_ = 0;
};

// Which of `num_rows` rows, from 0, is the one that differs between two digests that are not equal;
// nothing if several do.
std::optional<size_t> DifferingRow(uint64_t a, uint64_t b, size_t num_rows);

}  // namespace thinwire
