// Choice of what each block does about what it keeps, so that every stage fits into its memory: by
// seconds for each byte that is freed, then by simulated steps. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/keeping.h"

namespace thinwire {

// Choices of a block besides keeping all, with estimates.
struct KeepingOption {
  Keeping does = Keeping::kRecompute;
  int64_t freed_bytes = 0;  // of its stage
  double seconds = 0;       // of a step
};

struct ChoosingBlock {
  int stage = 0;
  std::vector<KeepingOption> options;  // besides kKeep
};

// Stages of which each block does as it is told.
struct TriedKeepings {
  std::vector<int64_t> stage_bytes;
  double step_seconds = 0;
};
// Tells what comes of such a choice, which has an entry for each block.
using TryKeepings = std::function<absl::StatusOr<TriedKeepings>(const std::vector<Keeping>&)>;

struct KeepingChoice {
  std::vector<Keeping> keepings;     // of each block
  TriedKeepings tried, plain;        // with these, and if all is kept
  std::vector<int64_t> least_bytes;  // with which each stage could do
  bool fits = false;                 // False: `keepings` are those of the least
};

// Chooses for stages that may take `limits` bytes. In each stage, blocks do what costs the fewest
// seconds for each byte until it fits. Then each of them goes back, or does something else, where
// the stages still fit and a step gets shorter; of equals the earlier block goes first. Returns the
// errors of `tries`.
absl::StatusOr<KeepingChoice> ChooseKeepings(const std::vector<ChoosingBlock>& blocks,
                                             const std::vector<int64_t>& limits,
                                             const TryKeepings& tries);

}  // namespace thinwire
