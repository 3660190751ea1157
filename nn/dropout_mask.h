// Decides which elements dropout keeps. It is a pure function of (key, sample, element). So any
// backend and thread can decide about any element, and a batch may be divided in any way. All
// backends use this definition: equal arguments give equal masks everywhere.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace thinwire {

// The mask of one sample's elements.
struct DropoutMask {
  // Makes the mask of sample `sample`; `rate` is in [0, 1).
  DropoutMask(uint64_t key, int64_t sample, float rate)
      : words(RandomKey(key, static_cast<uint64_t>(sample))),
        dropped(static_cast<uint32_t>(rate * 0x1p24f + 0.5f)) {}

  // Returns whether element `element` of the sample is kept.
  bool Keeps(uint32_t element) const {
    const uint32_t x = Mixed(element ^ static_cast<uint32_t>(words));
    return Mixed(x + static_cast<uint32_t>(words >> 32)) >> 8 >= dropped;
  }

  // Maps 32-bit words one to one, so that every input bit affects the whole output: Wellons's
  // lowbias32.
  static uint32_t Mixed(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }

  uint64_t words;    // random words of the sample
  uint32_t dropped;  // dropped values among 2^24
};

}  // namespace thinwire
