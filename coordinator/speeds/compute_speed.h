// Measurement of how fast a stage computes on this machine, by training one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Time of a forward and a backward pass.
struct ComputeSpeed {
  double gflops = 0;  // 10^9 operations per second, without the cost of `layer_seconds`
  // Fixed cost of each layer in a forward pass, however few its samples; backward takes twice as
  // much.
  double layer_seconds = 0;
  std::string by;       // what was trained, for people: "resnet8 of width 16 on cpu, threads 2"
  std::string machine;  // as MachineOf returns it
};

// Trains a small network on embedded data for about a second. It resembles the model of the
// resolved `experiment`: a ResNet or a GPT-2 of its width. It runs on the device and in the
// precision of the experiment's first stage, in one stage of `threads` (as pipeline.threads), first
// in large batches, then in small ones. Returns the errors of the session or of the run, with what
// to do instead.
absl::StatusOr<ComputeSpeed> MeasureComputeSpeed(const Experiment& experiment,
                                                 const std::string& threads,
                                                 const SessionOptions& options,
                                                 Interruption* interruption);

}  // namespace thinwire
