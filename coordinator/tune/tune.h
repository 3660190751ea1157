// `thinwire tune` from a question to its answer: measures, cuts, probes, and trains in rungs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"
#include "coordinator/sweep/sweep_file.h"
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

struct TuneQuestion {
  Experiment experiment;  // resolved
  bool tokens = false;    // whether its model takes them
  PlanAssumptions assumptions;
  TuneTask task;
  std::string dir;  // of the tune
  Speeds given;     // as far as they need not be measured
  // Means by which it is answered; the answer does not depend on them.
  SpeedFlags speeds;
  SessionOptions session;  // of the stages that train here
  int jobs = 1;            // runs at once
};

// Completes the report of OpenTune; tune.json has each part of it once it is known. Says on stderr
// how far it is. On the main thread and before gRPC is used. Errors of the experiment, the session,
// its runs and of files.
absl::Status RunTune(const TuneQuestion& question, TuneReport* report, Interruption* interruption);

// Writes DIR/tuned.yaml, the experiment with the choice of a complete report.
absl::Status WriteTuned(const TuneQuestion& question, const TuneReport& report);

}  // namespace thinwire
