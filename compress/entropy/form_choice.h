// Which form the entropy coder gives a string: by how long a frame of each is expected to be, from
// how often each byte is there. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace thinwire {

enum class EntropyForm { kPlain, kNeighbours, kPairs };

// Bytes that a frame of each form is expected to take; infinite where there is none.
struct FormBytes {
  double plain = std::numeric_limits<double>::infinity();
  double neighbours = std::numeric_limits<double>::infinity();
  double pairs = std::numeric_limits<double>::infinity();
};

// States and words of `strings` strings, which are worth so many bits together.
double ExpectedRansBytes(double bits, size_t strings);

// The forms of which frames are made, so that the best of them can be taken: one, but for short
// frames, where an expectation may be wrong by more than a frame gains. None where no frame is
// expected to be shorter than its string.
std::vector<EntropyForm> FormsToMake(const FormBytes& expected, size_t num_bytes);

// What the best form has the least of: a frame's bytes, and 0.9 percent less where it is one of
// pairs, which are decoded at twice the speed.
double FormCost(EntropyForm form, double frame_bytes);

}  // namespace thinwire
