// Slices of the positions of samples, one for each tensor-parallel part (sequence parallelism;
// Korthikanti et al., MLSys 2023). A layer that works on slices has rows [rows, features]: slice
// after slice, in each sample after sample, in each position after position.
#pragma once

#include <cstdint>

namespace thinwire {

// Range of indices.
struct IndexRange {
  int64_t first = 0, count = 0;
};

struct PositionSlices {
  int count = 0;           // of all slices of a sample; 0: samples are whole
  int64_t positions = 0;   // of a whole sample
  int first = 0, end = 0;  // range of the slices that are here

  bool are_whole() const { return count == 0; }
  // Returns the positions of a slice. Numbers of them differ by at most one.
  IndexRange Of(int slice) const {
    const int64_t begin = positions * slice / count;
    return {begin, positions * (slice + 1) / count - begin};
  }
  // Returns the number of a sample's positions that are here.
  int64_t PositionsHere() const { return Of(end).first - Of(first).first; }
  // Returns the number of ranges of rows whose gradients add up apart: slices here, or one.
  int groups() const { return are_whole() ? 1 : end - first; }
  // Returns the rows of a group, of so many in all.
  IndexRange RowsOf(int group, int64_t rows) const {
    if (are_whole()) return {0, rows};
    const int64_t samples = rows / PositionsHere();
    const IndexRange slice = Of(first + group);
    return {samples * (slice.first - Of(first).first), samples * slice.count};
  }
};

}  // namespace thinwire
