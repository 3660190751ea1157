// Where a sequence is cut into slices (ScheduleKind::kTeraPipe). Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace thinwire {

// The share of a whole sequence's time that its positions from `begin` to `end` take, both as
// shares of its positions. Of that time, `attention_share` is spent on pairs of a position and one
// not behind it, so that later positions have more of it; the rest is the same for each position.
double SliceShare(double begin, double end, double attention_share);

// What a stage takes for a sequence of a microbatch, forward and backward together.
struct SequenceCost {
  double seconds = 0;  // whole
  double attention_share = 0;
  double slice_seconds = 0;  // for each slice besides, however short
};

// The lengths of the slices, in order, with which `stages` equal ones end a step soonest, by the
// dynamic programme of Li et al., TeraPipe (ICML 2021), section 3.3: the least of
//   microbatches x sum of t + (stages - 1) x greatest t,   t being what a slice takes.
// A slice ends at a multiple of 8 positions, or of more where there would be over 128 of these, or
// at the sequence's end.
std::vector<int64_t> BestSlices(int64_t positions, int stages, int microbatches,
                                const SequenceCost& cost);

}  // namespace thinwire
