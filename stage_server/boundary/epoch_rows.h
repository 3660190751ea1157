// Which rows of state belong to the samples of a training message: a function of the experiment
// and the epoch, so that every stage knows it without reading data or being told.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compress/feedback/spec.h"
#include "data/sampler.h"

namespace thinwire {

// How an epoch is made of batches and these of microbatches.
struct EpochSpec {
  Shuffle shuffle;  // its batch_size is the run's
  int microbatches = 1;
  uint32_t epoch = 0;   // from 1
  int64_t samples = 0;  // of the training set
  // Of the run: those whose messages will come; 0: from the epoch's first, to its last.
  uint64_t first_step = 0, last_step = 0;
  bool goes_on = true;  // the messages that come then are the next step's
};

// Immutable: any thread.
class EpochRows {
 public:
  // `needs_ids`: rows of StateKey::kSample and kBatch will be asked for, which takes the epoch's
  // order; others do without.
  EpochRows(const EpochSpec& spec, bool needs_ids);

  uint32_t epoch() const { return spec_.epoch; }
  // Of which steps messages will come, from the first to the last.
  uint64_t first_step() const;
  uint64_t last_step() const;
  // The epoch of the step that follows these; nothing where nobody has said what does.
  std::optional<uint32_t> NextEpoch() const;

  // One row for each sample of the message, in order. InvalidArgument naming step or microbatch if
  // the epoch does not have it.
  absl::StatusOr<std::vector<uint64_t>> Of(StateKey key, uint64_t step, uint32_t microbatch) const;

  // Microbatches of the batch of that step, which the epoch has.
  int Microbatches(uint64_t step) const;

 private:
  // The steps of all epochs before this one.
  uint64_t StepsBefore() const { return (spec_.epoch - 1) * static_cast<uint64_t>(batches_); }
  // The number of the step's batch in the epoch, from 0; batches_ or more for every step of another
  // epoch.
  uint64_t BatchIndex(uint64_t step) const;
  int64_t BatchSize(int64_t index) const;

  const EpochSpec spec_;
  const int64_t batches_;
  std::vector<int64_t> order_;        // sample ids
  std::vector<int64_t> batch_order_;  // names of batches
};

}  // namespace thinwire
