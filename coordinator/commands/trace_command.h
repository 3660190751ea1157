// `thinwire trace`: shows where the time of a run's traced steps went.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace thinwire {

// Arguments of the command.
struct TraceFlags {
  std::string run;               // folder of the run
  std::optional<uint64_t> step;  // only this step
  std::string format = "text";   // text, json
  std::string svg;               // path for the picture of a step; empty: none
};

// Returns the process's exit code; errors go to stderr.
int TraceCommand(const TraceFlags& flags);

}  // namespace thinwire
