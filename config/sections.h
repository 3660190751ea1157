// Defaults and checks of sections of an experiment.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Defaults and checks of an experiment's `capture`.

// Fills in defaults and checks all values; the rest of `experiment` must be resolved.
// InvalidArgument names the field, the value met and what is wanted; for example for a step after
// the run's last one, or tensors of more than limit_bytes.
absl::Status ResolveCapture(const Experiment& experiment, CaptureConfig* capture);

// Adapters.

// Fills in `lora`, which must be there; the model must be resolved. InvalidArgument names the
// field, the value met and what is wanted.
absl::Status ResolveLora(Experiment* experiment);

// Evaluations that decide about a run.

// Checks that the evaluations of `experiment` have the `measure`, loss or accuracy, that the field
// `path` names. The rest must be resolved.
absl::Status CheckMeasure(const Experiment& experiment, const std::string& path,
                          const std::string& measure);

// Fills in defaults of `early_stop`, which must be there, and checks all values; likewise.
absl::Status ResolveEarlyStop(Experiment* experiment);

// Machines that are lost.

// Fills in `membership`, which must be there, and checks that the others can go on: with replicas
// and undivided layers, from what they have kept or from checkpoints. All else must be resolved.
absl::Status ResolveMembership(Experiment* experiment);

// Returns whether others go on with fewer machines when one is lost.
bool HasOpenMembership(const Experiment& experiment);
// Returns whether they do so with what they have: no machine alone trains a replica or remembers
// messages, and all learn of each step whether it can be done.
bool KeepsStates(const Experiment& experiment);

// Defaults and checks of an experiment's data.

// Sets the tokens of a text that has none to those of the folder of `init`, if it has a
// tokenizer.json.
void TakeTokensOfInit(Experiment* experiment);

// Fills in absent fields and checks every value; the general defaults must be filled in already. If
// the size of a text is neither given nor known, the text is read and counted. So the resolved
// experiment has it for readers without the text. Errors as in Resolve.
absl::Status ResolveData(DataConfig* data);

// Slices of sequences, which terapipe sends one after the other (schedule/schedule.h).

// Turns `auto` into numbers by BestSlices (schedule/slicing.h). It assumes stages that compute 100
// GFLOP/s, all with the FLOPs of the largest one, and links that take no time. InvalidArgument
// names what is impossible with slices of sequences, or slices that are impossible. The rest of
// `experiment` must be resolved.
absl::Status ResolveSlices(const Partition& partition, Experiment* experiment);

}  // namespace thinwire
