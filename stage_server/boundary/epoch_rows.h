// Maps the samples of a training message to the rows of state that belong to them. The map depends
// only on the experiment and the epoch, so each stage computes it without reading data or being
// told.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/spec.h"
#include "data/sampler.h"
#include "wire/message.h"

namespace thinwire {

// Division of an epoch into batches, and of batches into microbatches.
struct EpochSpec {
  Shuffle shuffle;  // its batch_size is the run's
  int microbatches = 1;
  uint32_t epoch = 0;   // counted from 1
  int64_t samples = 0;  // size of the training set
  // First and last step of the run whose messages will come. 0: the epoch's first, or its last.
  uint64_t first_step = 0, last_step = 0;
  bool goes_on = true;  // messages after `last_step` are those of the next step
  // Microbatches [first_carried, end_carried) are those of this pipeline, which alone cross its
  // cuts. Others may carry the rest.
  int first_carried = 0, end_carried = std::numeric_limits<int>::max();
};

// Immutable, so any thread may use it.
class EpochRows {
 public:
  // Set `needs_ids` if rows of StateKey::kSample or kBatch will be asked for: only these need the
  // order of the epoch, which takes time to compute.
  EpochRows(const EpochSpec& spec, bool needs_ids);

  uint32_t epoch() const { return spec_.epoch; }
  // Return the first and the last step whose messages will come.
  uint64_t first_step() const;
  uint64_t last_step() const;
  // Returns the epoch of a step from first_step() on, or nothing if it is not known what follows
  // last_step().
  std::optional<uint32_t> EpochOf(uint64_t step) const;

  // Returns one row for each sample of the message, in order. InvalidArgument names the step or
  // microbatch if the epoch does not have it.
  absl::StatusOr<std::vector<uint64_t>> Of(StateKey key, uint64_t step, uint32_t microbatch) const;

  // Returns the microbatches of `step` that this pipeline carries, [first, last). There may be none
  // in an epoch's last, smaller batch. Steps behind the epoch are as its first.
  SampleRange Carried(uint64_t step) const;

 private:
  // Returns the number of steps of all epochs before this one.
  uint64_t StepsBefore() const { return (spec_.epoch - 1) * static_cast<uint64_t>(batches_); }
  // Returns the index, from 0, of the step's batch in the epoch. It is at least batches_ for a step
  // of any other epoch.
  uint64_t BatchIndex(uint64_t step) const;
  int64_t BatchSize(int64_t index) const;
  int Microbatches(int64_t index) const;

  const EpochSpec spec_;
  const int64_t batches_;
  EpochOrder order_;
};

// Tracks which training message comes next in one direction of a cut. Messages that change state
// are accepted only in that order. A repeated or wrongly numbered message would otherwise show only
// by the damage to the state. Not thread-safe.
class MessageOrder {
 public:
  // Expects the messages of `rows` from now on: step by step and, within a step, microbatch by
  // microbatch of those that cross here.
  void Start(std::shared_ptr<const EpochRows> rows);

  // Checks that `key` is the next message; InvalidArgument names the epoch, step and microbatch
  // wanted. When all announced messages have come, the first of the next step is accepted too,
  // since a peer may be ahead. Before the first Start every message is accepted.
  absl::Status Check(const MessageKey& key) const;

  // Returns whether all messages announced by Start have come, or Start was never called.
  bool is_complete() const { return rows_ == nullptr || step_ > rows_->last_step(); }
  // Counts the message that Check accepted as received. Requires !is_complete().
  void Advance();

  // Returns what Start was given; null before the first.
  const std::shared_ptr<const EpochRows>& rows() const { return rows_; }

 private:
  // Goes to the first message of the first step, from `step` on, that has any.
  void GoTo(uint64_t step);

  std::shared_ptr<const EpochRows> rows_;
  // Step and microbatch of the next message.
  uint64_t step_ = 0;
  uint32_t microbatch_ = 0;
};

}  // namespace thinwire
