// Cutting a sequence into slices (ScheduleKind::kTeraPipe). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace thinwire {

// Returns the share of a whole sequence's time that its positions from `begin` to `end` take; both
// are fractions of the sequence. `attention_share` of the time is spent on pairs of a position and
// one not after it, so later positions have more of it. The rest is the same for each position.
double SliceShare(double begin, double end, double attention_share);

// Time that a stage takes for the sequences of a microbatch, forward and backward together.
struct SequenceCost {
  double seconds = 0;  // for whole sequences
  double attention_share = 0;
  double slice_seconds = 0;  // additional time of each slice, however short
};

// Returns the lengths of the slices, in order, with which `stages` equal stages end a step soonest.
// It is the dynamic programme of Li et al., TeraPipe (ICML 2021), section 3.3: with t the time of a
// slice, it minimises
//   microbatches x sum of t + (stages - 1) x greatest t.
// A slice ends at the sequence's end or at a multiple of 8 positions; of more, if there were over
// 128 such multiples.
std::vector<int64_t> BestSlices(int64_t positions, int stages, int microbatches,
                                const SequenceCost& cost);

}  // namespace thinwire
