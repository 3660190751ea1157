// Ascending positions below n as bytes, in one of three codings; see docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/bytes.h"
#include "compress/layout.h"
#include "tensor/error.h"

namespace thinwire {

struct IndexPlan {
  IndexCoding coding = IndexCoding::kPacked;
  uint32_t rice_bits = 0;  // of each gap's remainder
  size_t bytes = 0;
};

// The coding with the fewest bytes for these positions; the lower number wins a tie. Rice's
// remainder takes log2(n / count) bits, one more, or up to three fewer: whichever is smallest.
IndexPlan PlanIndices(const uint32_t* positions, size_t count, int64_t n, int threads);
void WriteIndices(const IndexPlan& plan, const uint32_t* positions, size_t count, int64_t n,
                  int threads, uint8_t* bytes);

// Visits the set bits of [from, end) from the lowest of the first byte on.
class SetBits {
 public:
  SetBits() = default;
  SetBits(const uint8_t* from, const uint8_t* end)
      : from_(from), end_(end), word_(LoadUpTo8(from, end)) {}
  // Requires that there is one left.
  uint64_t Next() {
    while (word_ == 0) {
      from_ += 8;
      first_bit_ += 64;
      word_ = LoadUpTo8(from_, end_);
    }
    const uint64_t bit = first_bit_ + static_cast<uint64_t>(__builtin_ctzll(word_));
    word_ &= word_ - 1;
    return bit;
  }

 private:
  const uint8_t* from_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint64_t word_ = 0;       // what is left of the eight bytes at from_
  uint64_t first_bit_ = 0;  // of word_
};

// InvalidArgument unless plan.bytes at `bytes` are as many as `count` positions below n can take
// and no unused bit is set. How many flags are set, and what the positions are, is not looked at.
Error CheckIndexBytes(const IndexPlan& plan, const uint8_t* bytes, size_t count, int64_t n);

// Reads positions from bytes of any origin.
class IndexReader {
 public:
  // `plan` says what lies at `bytes`, which outlives the reader. InvalidArgument unless there are
  // exactly `count` positions and no unused bit is set.
  Error Open(const IndexPlan& plan, const uint8_t* bytes, size_t count, int64_t n);
  // The next `num` positions; no more than `count` in all. InvalidArgument if they do not ascend or
  // one is not below n.
  Error Read(size_t num, uint32_t* positions);

 private:
  // All return the largest position, of which `positions` have only the low 32 bits.
  uint64_t ReadBitmap(size_t num, uint32_t* positions);
  uint64_t ReadPacked(size_t num, uint32_t* positions, bool* ascending);
  uint64_t ReadRice(size_t num, uint32_t* positions);

  IndexPlan plan_;
  int64_t n_ = 0;
  SetBits bits_;                     // of the bitmap, or of Rice's quotients
  const uint8_t* fields_ = nullptr;  // packed positions, or Rice's remainders
  const uint8_t* end_ = nullptr;
  uint32_t packed_bits_ = 0;
  uint64_t num_read_ = 0;
  uint64_t remainders_ = 0;  // sum of those read
  uint64_t least_ = 0;       // the next packed position is at least this
};

}  // namespace thinwire
