// `thinwire plan`: what an experiment needs, and on a given link which codec, how many microbatches
// and which schedule make its steps fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "coordinator/speeds/plan_speeds.h"

namespace thinwire {

struct PlanFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  // The network, as PlanAssumptions has it; without a link several usual ones, and no choices.
  std::optional<double> link_mbit;
  double rtt_ms = 0;
  std::string nic = "shared";
  int cores = 0;
  // What is tried besides the experiment's own; want a link.
  std::vector<std::string> codecs;  // as ParseCodecPair has them
  std::string parameters;           // JSON for libraries among them
  std::vector<int64_t> microbatches;
  std::vector<std::string> schedules;
  SpeedFlags speeds;
  std::string format = "text";  // text, json
  SessionOptions session;       // of the stage whose speed is measured
};

// Prints the plan, and then refuses what would not run on machines like this one. Returns the
// process's exit code; what is wrong goes to stderr.
int PlanCommand(const PlanFlags& flags, Interruption* interruption);

}  // namespace thinwire
