// The speeds that a plan rests on: those of a run, those that a user gives, or those that this
// machine has now.
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

struct SpeedFlags {
  std::string from;                          // a run's folder; empty: none
  std::optional<double> gflops, codec_gbps;  // have the last word
};

// As far as they need not be measured. InvalidArgument, or NotFound, names the flag and the value.
absl::StatusOr<Speeds> GivenSpeeds(const SpeedFlags& flags, const Experiment& experiment);

// Adds what `speeds` lacks: how fast a stage of `session` computes with `threads` (as
// pipeline.threads), and the codings of `experiments`, all of one model. On the main thread and
// before gRPC is used. Errors of the session, of its run and of codecs. After compute a signal
// ends the process at once, as there is nothing to end first.
absl::Status MeasureSpeeds(const SpeedFlags& flags,
                           const std::vector<const Experiment*>& experiments,
                           const std::string& threads, const SessionOptions& session,
                           Interruption* interruption, Speeds* speeds);

}  // namespace thinwire
