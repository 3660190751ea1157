// What blocks do about the tensors that their forward passes keep for their backward passes.
#pragma once

#include <vector>

#include "base/enum_names.h"

namespace thinwire {

// Choices for a block, as experiment files name them.
enum class Keeping {
  kKeep,       // all of it stays in the device's memory
  kRecompute,  // nothing but the input stays; the block runs forward a second time (models/cost.h)
  kStash,      // a codec encodes it
  kSwap        // it waits in the host's memory or in a file
};

// Returns the names "keep", "recompute", "stash" and "swap" (base/enum_names.h).
NameTable<Keeping> TableOf(Keeping);

// What one block does. All may go together: of a block that runs again the input is encoded, and
// the payload waits elsewhere.
struct BlockKeeping {
  bool recompute = false;
  bool stash = false;
  bool swap = false;

  // Returns whether what the block keeps is put away between its passes.
  bool puts_away() const { return stash || swap; }
};

inline bool operator==(const BlockKeeping& a, const BlockKeeping& b) {
  return a.recompute == b.recompute && a.stash == b.stash && a.swap == b.swap;
}
inline bool operator!=(const BlockKeeping& a, const BlockKeeping& b) { return !(a == b); }

// Returns what a block does that does nothing but that.
BlockKeeping Only(Keeping keeping);

}  // namespace thinwire
