// Digest of the state of a message's rows: one 64-bit number from which the other end can tell
// which row differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace thinwire {

// Digest of rows in order. It holds two sums modulo the prime p = 2^32 - 5 over the rows' digests
// h_i, i from 1: sum h_i in the upper half and sum i h_i in the lower. If row j alone differs, by
// d, the sums differ by d and by j d.
class StateDigest {
 public:
  void Add(uint64_t row_digest);
  uint64_t value() const { return sum_ << 32 | weighted_; }

 private:
  uint64_t rows_ = 0, sum_ = 0, weighted_ = 0;
};

// Returns which of `num_rows` rows (from 0) differs, given two unequal digests; nothing if several
// rows do.
std::optional<size_t> DifferingRow(uint64_t a, uint64_t b, size_t num_rows);

}  // namespace thinwire
