// How fast a stage computes on this machine, by training one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// What a forward and a backward pass take.
struct ComputeSpeed {
  double gflops = 0;  // 10^9 operations per second, without what follows
  // Besides, each layer's forward pass, however few its samples, and a half of a backward pass.
  double layer_seconds = 0;
  std::string by;       // what was trained, for people: "resnet8 of width 16 on cpu, threads 2"
  std::string machine;  // as MachineOf has it
};

// Trains, for about a second, a small network of embedded data that resembles the resolved
// `experiment`'s: a ResNet of its width or a GPT-2 of its width, on the device and in the precision
// of its first stage, in one stage of `threads` (as pipeline.threads); first in large batches, then
// in small ones. Errors of the session or of the run, with what to do instead.
absl::StatusOr<ComputeSpeed> MeasureComputeSpeed(const Experiment& experiment,
                                                 const std::string& threads,
                                                 const SessionOptions& options,
                                                 Interruption* interruption);

}  // namespace thinwire
