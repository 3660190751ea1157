// Ascending positions below n as bytes, in one of three codings; see docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

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
IndexPlan PlanIndices(const uint32_t* positions, size_t count, int64_t n);
void WriteIndices(const IndexPlan& plan, const uint32_t* positions, size_t count, int64_t n,
                  uint8_t* bytes);

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
  void ReadBitmap(size_t num, uint64_t* positions);
  void ReadPacked(size_t num, uint64_t* positions);
  void ReadRice(size_t num, uint64_t* positions);
  uint64_t NextSetBit();
  uint64_t Field(uint64_t index, uint32_t width) const;

  IndexPlan plan_;
  const uint8_t* fields_ = nullptr;  // packed positions, or Rice's remainders
  const uint8_t* flags_ = nullptr;   // the bitmap, or Rice's quotients
  const uint8_t* end_ = nullptr;
  int64_t n_ = 0;
  uint32_t packed_bits_ = 0;
  uint64_t num_read_ = 0;
  uint64_t remainders_ = 0;  // sum of those read
  uint64_t least_ = 0;       // the next position is at least this
  uint64_t word_ = 0;        // set bits of flags_ not yet visited, of the word at word_bit_
  uint64_t word_bit_ = 0;
};

}  // namespace thinwire
