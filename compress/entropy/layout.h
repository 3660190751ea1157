// Layout of the entropy coder's frames that code one byte at a time: their head and their tables.
// The format is in docs/compression.md; frame.h writes and reads whole frames.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compress/entropy/context_choice.h"
#include "compress/entropy/rans.h"
#include "compress/entropy/stretches.h"
#include "tensor/error.h"

namespace thinwire {

constexpr uint8_t kPartsForm = 17;  // stands where other frames have their number of neighbours

// Head of a frame: what stands before its tables.
struct EntropyHead {
  size_t num_bytes = 0;
  // A count of kPairsForm marks a frame of pairs, for which only num_bytes means anything.
  Neighbours neighbours;
  RowLayout layout;          // of codes with neighbours; other bytes stand as in memory
  bool is_in_parts = false;  // form kPartsForm; otherwise the layout is one part of width 1
  // Bytes coded with neighbours: `count` from `begin` on. Without neighbours all bytes are coded,
  // with one table.
  size_t begin = 0, count = 0;
  uint16_t boundaries = 0;  // see ChooseBoundaries

  bool has_neighbours() const { return neighbours.count > 0; }
  // Returns how many bytes are coded, with the padding of the last row if there are neighbours.
  size_t coded_bytes() const { return has_neighbours() ? NumRows(count) * kStates : num_bytes; }
  size_t uncoded_bytes() const { return num_bytes - count; }
  // Returns the number of bytes that WriteEntropyHead writes.
  size_t head_bytes() const {
    if (!has_neighbours()) return is_in_parts ? 8 : 5;
    return (is_in_parts ? 19 : 15) + 4 * neighbours.count;
  }
  // Returns the number of bytes of the parts' lengths, which follow the tables.
  size_t lengths_bytes() const { return is_in_parts ? 4 * layout.num_parts : 0; }
  // Returns the index of a part's first byte among the coded bytes.
  size_t PartBegin(size_t part) const {
    return std::min(layout.PartBegin(NumRows(count), part) * kStates, coded_bytes());
  }
  // Returns the number of contexts; ContextOf returns a sum's, the number of boundaries up to it.
  int num_contexts() const { return 1 + __builtin_popcount(boundaries); }
  uint8_t ContextOf(int sum) const {
    return static_cast<uint8_t>(__builtin_popcount(boundaries & ((2u << sum) - 1)));
  }
};

// Length of the longest string that can have a frame.
constexpr size_t kMostEntropyBytes = UINT32_MAX - kStates;
constexpr size_t kMostEntropyHeadBytes = 19 + 4 * Neighbours::kMost;

// Returns the head of a string that is coded without neighbours: in parts if it is long.
EntropyHead HeadWithoutNeighbours(size_t num_bytes);

// Writes the head to `to` and returns the end of what it wrote.
uint8_t* WriteEntropyHead(const EntropyHead& head, uint8_t* to);

// Reads a head and removes it from the front of `frame`. InvalidArgument names what is wrong, such
// as a string of more than `most` bytes.
Error ReadEntropyHead(absl::Span<const uint8_t>* frame, size_t most, EntropyHead* head);

// Returns how often each of `count` codes occurs, from the histogram of the bytes of their rows.
Frequencies CodesOfSums(const SumCounts& of_rows, size_t count);

// Frequency tables by which a string is coded.
struct EntropyTables {
  std::array<Frequencies, kSums> of_context;
  std::array<Frequencies, kSums> of_sum;  // each is the table of the sum's context
};

// Chooses the contexts' boundaries and the tables for a string with these counts (all in counts[0]
// if it has no neighbours). Returns the expected number of bytes of the frame.
double ChooseTables(const SumCounts& counts, EntropyHead* head, EntropyTables* tables);

// Writes the tables of all contexts to `to`, which has room for num_contexts * kMaxTableBytes
// bytes. Returns the end of what it wrote.
uint8_t* WriteTables(const EntropyHead& head, const EntropyTables& tables, uint8_t* to);

// Frame whose sizes were checked, but whose coded bytes were not.
struct EntropyFrameView {
  absl::Span<const uint8_t> uncoded;
  std::array<Frequencies, kSums> of_context;
  std::vector<absl::Span<const uint8_t>> parts;  // rANS states and words of each part
  uint8_t context_of_sum[kSums];
};

// Finds the parts behind their lengths. InvalidArgument names what is wrong.
Error ViewParts(size_t num_parts, absl::Span<const uint8_t> frame,
                std::vector<absl::Span<const uint8_t>>* parts);

// Reads what follows the head of a frame, which is not one of pairs. InvalidArgument names what is
// wrong.
Error ViewEntropyFrame(const EntropyHead& head, absl::Span<const uint8_t> behind_head,
                       EntropyFrameView* view);

}  // namespace thinwire
