// Choice of the form of an entropy coder's frame, by the expected length of a frame of each form,
// which follows from how often each byte occurs. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace thinwire {

enum class EntropyForm { kPlain, kNeighbours, kPairs };

// Expected bytes of a frame of each form; infinite where that form does not exist.
struct FormBytes {
  double plain = std::numeric_limits<double>::infinity();
  double neighbours = std::numeric_limits<double>::infinity();
  double pairs = std::numeric_limits<double>::infinity();
};

// Returns the expected bytes of the rANS states and words of `strings` strings whose information
// content is `bits` bits in all.
double ExpectedRansBytes(double bits, size_t strings);

// Returns the forms of which frames should be made, to take the best of them. This is one form,
// except for short frames, where an expectation may be wrong by more than a form gains. Empty if no
// frame is expected to be shorter than its string.
std::vector<EntropyForm> FormsToMake(const FormBytes& expected, size_t num_bytes);

// Returns the cost by which forms are compared: the frame's bytes, less 0.9 percent for a frame of
// pairs, because these are decoded at twice the speed.
double FormCost(EntropyForm form, double frame_bytes);

}  // namespace thinwire
