// The runs of a rung: which there are, and what became of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/sweep/rows.h"
#include "coordinator/sweep/sweep_runs.h"
#include "coordinator/tune/cuts.h"
#include "coordinator/tune/judge.h"
#include "coordinator/tune/rungs.h"
#include "proto/experiment.pb.h"
#include "proto/tune.pb.h"

namespace thinwire {

// Why the run of a candidate failed, by the candidate's name.
using TuneFailures = std::map<std::string, std::string>;

// Lists the runs of `none` and of each standing candidate with each seed of the rung, in the
// resolved experiment made as short as the rung says, and describes the rung in `record`.
absl::StatusOr<std::vector<SweepRun>> RunsOfRung(const Experiment& resolved, const Rung& rung,
                                                 TuneCandidates* candidates, TuneRung* record);

// Adds the candidates whose run failed. Internal where a run of `none` failed, or one of every
// candidate: that is a fault of none of them.
absl::Status NoteFailures(const std::vector<SweepRun>& runs, const SweptRuns& swept,
                          TuneFailures* failures);

// Reads what the run in `folder` reached. Sets whether it is judged by its loss, and adds the time
// that it trained to `seconds`.
absl::StatusOr<TrainedRun> ReadTrainedRun(const SweepRun& run, const std::string& folder,
                                          bool* is_loss, double* seconds);

}  // namespace thinwire
