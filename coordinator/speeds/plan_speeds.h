// Speeds for a plan: from a run, from the user, or measured now on this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/plan/speeds.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Flags that give speeds.
struct SpeedFlags {
  std::string from;                          // folder of a run; empty: none
  std::optional<double> gflops, codec_gbps;  // take precedence
};

// Returns the speeds that need no measurement. InvalidArgument or NotFound names the flag and the
// value.
absl::StatusOr<Speeds> GivenSpeeds(const SpeedFlags& flags, const Experiment& experiment);

// Measures what `speeds` lacks: the compute speed of a stage of `session` with `threads` (as
// pipeline.threads), and the codings of `experiments`, which must have one model. Must be called on
// the main thread, before gRPC is used. Returns errors of the session, of its run and of codecs.
// After the compute measurement a signal ends the process at once, as nothing has to be ended
// first.
absl::Status MeasureSpeeds(const SpeedFlags& flags,
                           const std::vector<const Experiment*>& experiments,
                           const std::string& threads, const SessionOptions& session,
                           Interruption* interruption, Speeds* speeds);

}  // namespace thinwire
