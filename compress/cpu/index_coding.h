// Coding of ascending positions below n as bytes, in one of three ways; see docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "compress/bytes.h"
#include "compress/cpu/set_bits.h"
#include "compress/layout.h"
#include "tensor/error.h"

namespace thinwire {

// Coding of one message's positions, and its size.
struct IndexPlan {
  IndexCoding coding = IndexCoding::kPacked;
  uint32_t rice_bits = 0;  // of each gap's remainder
  size_t bytes = 0;
};

// Returns the coding with the fewest bytes for these positions; the lower number wins a tie. A Rice
// remainder takes log2(n / count) bits, one more, or up to three fewer: whichever gives the fewest
// bytes.
IndexPlan PlanIndices(const uint32_t* positions, size_t count, int64_t n, int threads);
// Writes the positions as planned: plan.bytes bytes.
void WriteIndices(const IndexPlan& plan, const uint32_t* positions, size_t count, int64_t n,
                  int threads, uint8_t* bytes);

// Reader of numbers of `width` <= 32 bits, stored one after the other, the lowest bit of a byte
// first.
class FieldReader {
 public:
  // Starts at number `first` of those stored from `from` on.
  FieldReader(const uint8_t* from, const uint8_t* end, uint32_t width, uint64_t first)
      : from_(from + first * width / 8),
        end_(end),
        width_(width),
        mask_((uint64_t{1} << width) - 1) {
    const uint32_t skipped = first * width % 8;
    if (skipped == 0) return;
    word_ = uint64_t{*from_++} >> skipped;
    filled_ = 8 - skipped;
  }
  // Returns the next number; bits behind the last byte are zeros.
  uint64_t Next() {
    if (filled_ < width_) {
      word_ |= (LoadUpTo8(from_, end_) & 0xFFFFFFFF) << filled_;
      from_ += 4;
      filled_ += 32;
    }
    const uint64_t field = word_ & mask_;
    word_ >>= width_;
    filled_ -= width_;
    return field;
  }

 private:
  const uint8_t* from_;
  const uint8_t* end_;
  const uint32_t width_;
  const uint64_t mask_;
  uint64_t word_ = 0;    // bits that were read and not returned yet
  uint32_t filled_ = 0;  // their number
};

// Checks the length of indices and their padding. InvalidArgument unless plan.bytes is a length
// that `count` positions below n can take, and no unused bit is set. Reads at most two bytes, by
// byte_at(i). Does not check how many flags are set, nor the positions.
Error CheckIndexBytes(const IndexPlan& plan, absl::FunctionRef<uint8_t(size_t)> byte_at,
                      size_t count, int64_t n);

// Reader of positions from bytes that are not trusted.
class IndexReader {
 public:
  // Starts reading at `bytes`, which outlive the reader and are as `plan` says. InvalidArgument
  // unless there are exactly `count` positions and no unused bit is set.
  Error Open(const IndexPlan& plan, const uint8_t* bytes, size_t count, int64_t n);
  // Reads the next `num` positions; no more than `count` in all. InvalidArgument if they do not
  // ascend or one is not below n.
  Error Read(size_t num, uint32_t* positions);

 private:
  // Read `num` positions in one coding. Each returns the largest of them; `positions` have only the
  // low 32 bits.
  uint64_t ReadBitmap(size_t num, uint32_t* positions);
  uint64_t ReadPacked(size_t num, uint32_t* positions, bool* ascending);
  uint64_t ReadRice(size_t num, uint32_t* positions);
  // Turn Rice's flags into positions: eight at a time, or one by one for long remainders.
  void PlaceAtOnce(size_t num, uint32_t* positions);
  void PlaceOneByOne(size_t num, uint32_t* positions);

  IndexPlan plan_;
  int64_t n_ = 0;
  SetBits bits_;                     // of the bitmap, or of Rice's quotients
  const uint8_t* fields_ = nullptr;  // packed positions, or Rice's remainders
  const uint8_t* fields_end_ = nullptr;
  uint64_t num_read_ = 0;
  uint64_t remainders_ = 0;  // sum of the remainders read
  uint64_t least_ = 0;       // the next packed position is at least this
};

}  // namespace thinwire
