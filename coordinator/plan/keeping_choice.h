// Choice of what each block does about what it keeps, so that every stage fits into its memory: by
// seconds for each byte that is freed, then by simulated steps. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/keeping.h"

namespace thinwire {

// Choice of a block besides keeping all, with estimates.
struct KeepingOption {
  Keeping does = Keeping::kRecompute;
  int64_t freed_bytes = 0;    // of its stage
  double seconds = 0;         // of a step, for which it makes its stage busy
  double moving_seconds = 0;  // of a step, of copies beside what its stage computes
};

struct ChoosingBlock {
  int stage = 0;
  // Where blocks of a stage are of one kind and do the same, only the first is tried to do
  // something else.
  int kind = 0;
  std::vector<KeepingOption> options;  // besides kKeep
};

// Stages of which each block does as it is told.
struct TriedKeepings {
  std::vector<int64_t> stage_bytes;
  std::vector<double> stage_seconds;  // for which each is busy in a step
  double step_seconds = 0;
};
// Tells what comes of such a choice, which has an entry for each block.
using TryKeepings = std::function<absl::StatusOr<TriedKeepings>(const std::vector<Keeping>&)>;

struct KeepingChoice {
  std::vector<Keeping> keepings;     // of each block
  TriedKeepings tried, plain;        // with these, and if all is kept
  std::vector<int64_t> least_bytes;  // with which each stage could do, as far as was found
  bool fits = false;                 // False: `keepings` are those of the least
};

// Choices that are tried at most, besides some for each stage with which the search begins; then
// the best one so far counts.
inline constexpr int kMostTries = 3000;

// Chooses for stages that may take `limits` bytes. In a stage that does not fit, blocks do what
// costs the fewest seconds for each byte until it fits. That is done at several weights of copies:
// at 0 they are hidden behind the computation, at 1 they are what a stage waits for. (These are
// Lagrange multipliers of: copies take no longer than the computation.) It is done with all
// options, and without one of them. Of these, and of the least that was found, single blocks then
// do what saves the most seconds for each byte, and that counts which makes the stage busy for the
// least time. In the end one block or two do something else where a step of the pipeline gets
// shorter. Of equals the earlier block goes first. Returns the errors of `tries`.
absl::StatusOr<KeepingChoice> ChooseKeepings(const std::vector<ChoosingBlock>& blocks,
                                             const std::vector<int64_t>& limits,
                                             const TryKeepings& tries);

}  // namespace thinwire
