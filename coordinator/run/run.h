// The epoch loop: configures and connects the stages, trains and evaluates, writes checkpoints and
// goes on from them, fills in the summary.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/model_files.h"
#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// What a run leaves behind to go on from, and how it does.
struct RunOptions {
  std::string run;          // its id
  std::string checkpoints;  // the folder for them; empty: none is written
  SideFiles beside;         // each checkpoint's, see SideFilesOf
  std::optional<FoundCheckpoint> from;
  std::optional<TraceSteps> trace;  // steps to trace; empty: none
  // Puts the sizes of the record's files into the progress, and cuts the files to these: null,
  // both, without a record.
  std::function<absl::Status(RunProgress*)> measure_record;
  std::function<absl::Status(const RunProgress&)> cut_record;
  // The stages anew, as the next generation of the run, when one was lost for that reason: the
  // fleet before is gone then. Null: a loss ends the run.
  std::function<absl::StatusOr<Fleet*>(const Failure& loss)> next_generation;
};

// Runs the resolved `experiment` on the stages of `fleet`, from the parameters of `init` if it has
// one, or from a checkpoint, and returns when the last epoch is evaluated; the stages still hold
// their parameters then. Blocks. `summary` always tells what was reached, also after an error; its
// name, status, error, started and finished are the caller's. Errors name the stage, and the root
// cause among several (see Fleet); Cancelled after Fleet::Interrupt, when a checkpoint has been
// written if the experiment wants any and the training could end its step.
absl::Status RunExperiment(const Experiment& experiment, Fleet* fleet, RunObserver* observer,
                           Summary* summary, const RunOptions& options = {});

}  // namespace thinwire
