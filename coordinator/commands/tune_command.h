// `thinwire tune`: which codec reaches a target soonest over a given link.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"

namespace thinwire {

struct TuneFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  double link_mbit = 0;
  double rtt_ms = 0;
  std::string nic = "shared";
  int cores = 0;                   // as PlanAssumptions
  std::optional<double> max_loss;  // points of accuracy, or nats; none: 1, or 0.02
  std::optional<double> target;    // per cent, or nats; none: what `none` will reach, less max_loss
  std::vector<std::string> codecs;    // as ParseCodecPair has them; none: the library
  std::string parameters;             // JSON for libraries among them
  std::vector<int64_t> microbatches;  // of which each codec takes its fastest; none: the file's
  int candidates = 8;                 // trained, at most
  int seeds = 3;                      // of the last rung
  int batches = 3;                    // of the probe
  int jobs = 1;                       // runs at once
  SpeedFlags speeds;
  std::string out;              // folder; empty: runs/NAME-tune
  std::string format = "text";  // text, json
  SessionOptions session;       // of the stages that train here
};

// Says how far it is and what went wrong on stderr, prints the result, and returns the process's
// exit code (exit_code.h). To be called on the main thread and before gRPC is used.
int TuneCommand(const TuneFlags& flags, Interruption* interruption);

}  // namespace thinwire
