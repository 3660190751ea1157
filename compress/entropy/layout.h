// The entropy coder's frames of codes of a byte each: what stands where, and their tables. Their
// form is in docs/compression.md; entropy_frame.h makes and reads them.
#pragma once

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

// What a frame says before its tables.
struct EntropyHead {
  size_t num_bytes = 0;
  Neighbours neighbours;  // a count of kPairsForm: a frame of pairs, of which the rest is not here
  RowLayout layout;       // of codes with neighbours
  bool is_in_parts = false;  // of kPartsForm; else the layout is one part of width 1
  // Without neighbours all bytes are coded, with one table; with them `count` from `begin` on.
  size_t begin = 0, count = 0;
  uint16_t boundaries = 0;  // see ChooseBoundaries

  bool has_neighbours() const { return neighbours.count > 0; }
  // Coded bytes are in rows where they have neighbours.
  size_t coded_bytes() const { return has_neighbours() ? NumRows(count) * kStates : num_bytes; }
  size_t uncoded_bytes() const { return num_bytes - count; }
  // What WriteEntropyHead writes.
  size_t head_bytes() const {
    if (!has_neighbours()) return 5;
    return (is_in_parts ? 19 : 15) + 4 * neighbours.count;
  }
  // The lengths of parts, behind the tables.
  size_t lengths_bytes() const { return is_in_parts ? 4 * layout.num_parts : 0; }
  // The first byte of a part among the coded ones.
  size_t PartBegin(size_t part) const { return layout.PartBegin(NumRows(count), part) * kStates; }
  int num_contexts() const { return 1 + __builtin_popcount(boundaries); }
  uint8_t ContextOf(int sum) const {
    return static_cast<uint8_t>(__builtin_popcount(boundaries & ((2u << sum) - 1)));
  }
};

// Longer strings have no frame.
constexpr size_t kMostEntropyBytes = UINT32_MAX - kStates;
constexpr size_t kMostEntropyHeadBytes = 19 + 4 * Neighbours::kMost;

// Returns the end.
uint8_t* WriteEntropyHead(const EntropyHead& head, uint8_t* to);

// Takes the head off the front of `frame`. InvalidArgument names what is wrong.
Error ReadEntropyHead(absl::Span<const uint8_t>* frame, size_t most, EntropyHead* head);

// By which a string is coded.
struct EntropyTables {
  std::array<Frequencies, kSums> of_context;
  std::array<Frequencies, kSums> of_sum;  // that of its context
};

// Of bytes so often there for each sum; all in the first where there are no neighbours. Chooses
// where contexts begin. Returns how many bytes the frame is expected to take.
double ChooseTables(const SumCounts& counts, EntropyHead* head, EntropyTables* tables);

// Returns the end; num_contexts kMaxTableBytes are enough.
uint8_t* WriteTables(const EntropyHead& head, const EntropyTables& tables, uint8_t* to);

// A frame whose sizes were checked, but none of what is coded.
struct EntropyFrameView {
  absl::Span<const uint8_t> uncoded;
  std::array<Frequencies, kSums> of_context;
  std::vector<absl::Span<const uint8_t>> parts;  // states and words of each
  uint8_t context_of_sum[kSums];
};

// Of what stands behind the head, not one of pairs.
Error ViewEntropyFrame(const EntropyHead& head, absl::Span<const uint8_t> behind_head,
                       EntropyFrameView* view);

}  // namespace thinwire
