// `thinwire tune` from a question to its answer: measures, cuts, probes, and trains in rungs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"
#include "proto/experiment.pb.h"
#include "proto/tune.pb.h"

namespace thinwire {

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
