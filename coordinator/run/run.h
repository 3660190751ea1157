// A run of training on a fleet's stages, from the first step or a checkpoint to the last epoch,
// across the losses of stages.
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

// Checkpoints, tracing and recovery of a run.
struct RunOptions {
  std::string run;          // its id
  std::string checkpoints;  // folder for checkpoints; empty: none are written
  SideFiles beside;         // files beside each checkpoint's model, see SideFilesOf
  // Checkpoint to continue from, if any.
  std::optional<FoundCheckpoint> from;
  std::optional<TraceSteps> trace;  // steps to trace, if any
  // Store the sizes of the record's files in the progress, and cut the files to these sizes. Both
  // are null if there is no record.
  std::function<absl::Status(RunProgress*)> measure_record;
  std::function<absl::Status(const RunProgress&)> cut_record;
  // Saves the parameters, after every stage has done an epoch's last step, or the one with which an
  // interruption ended it. Null: they are not saved.
  std::function<absl::Status()> save_model;
  // Returns the stages again, as the next generation of the run, after one was lost; the previous
  // fleet no longer exists then. Null: a loss ends the run.
  std::function<absl::StatusOr<Fleet*>(const Failure& loss)> next_generation;
};

// Runs the resolved `experiment` on the stages of `fleet`, from the parameters of `init` if it has
// one, or from a checkpoint. Returns when the last epoch is evaluated; the stages still hold their
// parameters then. Blocks. `summary` is filled in as far as the run came, even after an error; the
// caller sets its name, status, error, started and finished. Errors name the stage, and the root
// cause among several (see Fleet). Cancelled after Fleet::Interrupt; then a checkpoint has been
// written, if the experiment wants any and training could end its step.
absl::Status RunExperiment(const Experiment& experiment, Fleet* fleet, RunObserver* observer,
                           Summary* summary, const RunOptions& options = {});

}  // namespace thinwire
