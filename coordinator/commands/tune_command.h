// `thinwire tune`: finds the codec that reaches a target soonest over a given link.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"

namespace thinwire {

// Arguments of the command.
struct TuneFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  double link_mbit = 0;
  double rtt_ms = 0;
  std::string nic = "shared";
  int cores = 0;                   // see PlanAssumptions
  std::optional<double> max_loss;  // points of accuracy, or nats; not set: 1, or 0.02
  // Per cent, or nats; not set: what `none` will reach, less max_loss.
  std::optional<double> target;
  std::vector<std::string> codecs;  // as ParseCodecPair reads them; none: the built-in library
  std::string parameters;           // JSON parameters of libraries among the codecs
  // Numbers of which each codec takes its fastest; none: the file's.
  std::vector<int64_t> microbatches;
  int candidates = 8;  // most candidates to train
  int seeds = 3;       // of the last rung
  int batches = 3;     // of the probe
  int jobs = 1;        // number of runs at once
  SpeedFlags speeds;
  std::string out;              // folder; empty: runs/NAME-tune
  std::string format = "text";  // text, json
  SessionOptions session;       // stages that train on this machine
};

// Prints progress and errors to stderr and the result to stdout. Returns the process's exit code
// (exit_code.h). Must be called on the main thread, before gRPC is used.
int TuneCommand(const TuneFlags& flags, Interruption* interruption);

}  // namespace thinwire
