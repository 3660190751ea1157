// Rotary positions for tests and benchmarks of attention.
#pragma once

#include <deque>
#include <vector>

#include "models/rotary.h"
#include "nn/ops.h"

namespace thinwire {

// Gives the attention the frequencies of that base, which live as long as the process; 0: none.
inline void SetRopeTheta(double theta, AttentionSpec* spec) {
  static auto* const all = new std::deque<std::vector<double>>;
  spec->frequencies =
      theta == 0 ? nullptr
                 : all->emplace_back(RotaryFrequencies(theta, {}, spec->head_size / 2)).data();
}

}  // namespace thinwire
