// One run that leaves its results in a folder, and tells the terminal and Prometheus how it goes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "coordinator/checkpoint/folder.h"
#include "coordinator/files/record.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct RecordedRunOptions {
  SessionOptions session;      // logs_dir, lease_file and say_waiting become the run's
  std::string metrics_listen;  // host:port
  double metrics_linger_seconds = 0;
  bool quiet = false;
  std::optional<FoundCheckpoint> from;  // where an earlier run left off
  std::optional<TraceSteps> trace;      // the steps to trace
};

// Trains the resolved `experiment` from its first stage server to the summary in `record`, which is
// written in every case. Says on stderr what went wrong and returns the process's exit code
// (exit_code.h). On the main thread and before gRPC is used (see Session::Start).
int RunRecorded(Experiment experiment, RecordedRunOptions options,
                std::unique_ptr<RunRecord> record, Interruption* interruption);

}  // namespace thinwire
