// `thinwire plan`: resources of an experiment and, for a given link, the codec, number of
// microbatches and schedule with the fastest steps.
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
struct PlanFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  // The network, see PlanAssumptions. Without a link rate the plan is for several usual ones and
  // has no choices.
  std::optional<double> link_mbit;
  double rtt_ms = 0;
  std::string nic = "shared";
  int cores = 0;
  // What to try besides the experiment's own; needs a link rate.
  std::vector<std::string> codecs;  // as ParseCodecPair reads them
  std::string parameters;           // JSON parameters of libraries among the codecs
  std::vector<int64_t> microbatches;
  std::vector<std::string> schedules;
  SpeedFlags speeds;
  std::string format = "text";  // text, json
  SessionOptions session;       // of the stage whose speed is measured
};

// Prints the plan, and then an error if it could not run on machines like this one. Returns the
// process's exit code; errors go to stderr.
int PlanCommand(const PlanFlags& flags, Interruption* interruption);

}  // namespace thinwire
