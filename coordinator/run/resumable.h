// Resuming of a run: how far it got, whether an experiment can continue it, and what is then
// different.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/files/record.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Checks that `now` can continue the run of `then`; both are resolved. InvalidArgument names the
// fields that differ and may not: those that the state of a run depends on (model, data, batches,
// seeds, kinds of optimizer and of numbers). Cuts, stages, compression, learning rate and epochs
// may differ.
absl::Status CheckGoesOn(const Experiment& then, const Experiment& now);

// Compares the data that the stages have read with those of the run of `manifest`, as far as the
// digests tell. InvalidArgument names both digests if they differ although the experiments name the
// same data. If the user names other data, returns a line that says so; otherwise an empty string.
absl::StatusOr<std::string> OtherData(const Experiment& then, const Experiment& now,
                                      const CheckpointManifest& manifest,
                                      const Provenance& provenance);

// Returns the checkpoint from which a run goes on, that of `step` or the newest, with the digests
// of its data where the manifest or the summary has them. None in a run that was killed before its
// first. Errors of CheckpointOfStep and NewestCheckpoint.
absl::StatusOr<std::optional<FoundCheckpoint>> CheckpointToGoOn(const RunRecord& record,
                                                                std::optional<uint64_t> step);

// Tells whether the run in `dir`, which has `reached` its last checkpoint, has trained all that
// `now` asks for, and has said so: one that was killed between its last step and its summary is
// still to be ended.
bool HasEnded(const CheckpointManifest& reached, const Experiment& now, const std::string& dir);

// Returns lines for the user; none if nothing differs. They name the fields with new values. If the
// new schedule has other learning rates for steps up to `step`, they also give the rate of the next
// step. `then` is the experiment of the checkpoint after `step`, `now` the one that continues; both
// are resolved.
absl::StatusOr<std::vector<std::string>> NewCourse(const Experiment& then, const Experiment& now,
                                                   uint64_t step, uint64_t steps_per_epoch);

}  // namespace thinwire
