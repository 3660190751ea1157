// Which elements dropout keeps: a pure function of (key, sample, element), so that any backend and
// thread decides on any element, and a batch may be divided in any way. The definition of all
// backends: equal arguments give equal masks everywhere.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace thinwire {

// The mask of one sample's elements.
struct DropoutMask {
  // `rate` in [0, 1).
  DropoutMask(uint64_t key, int64_t sample, float rate)
      : words(RandomKey(key, static_cast<uint64_t>(sample))),
        dropped(static_cast<uint32_t>(rate * 0x1p24f + 0.5f)) {}

  bool Keeps(uint32_t element) const {
    const uint32_t x = Mixed(element ^ static_cast<uint32_t>(words));
    return Mixed(x + static_cast<uint32_t>(words >> 32)) >> 8 >= dropped;
  }

  // A bijection of 32 bits that spreads each over the word: Wellons's lowbias32.
  static uint32_t Mixed(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }

  uint64_t words;    // the sample's own
  uint32_t dropped;  // of 2^24
};

}  // namespace thinwire
