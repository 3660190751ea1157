// `thinwire trace`: where the time of a run's traced steps went.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace thinwire {

struct TraceFlags {
  std::string run;               // its folder
  std::optional<uint64_t> step;  // this one alone
  std::string format = "text";   // text, json
  std::string svg;               // where the picture of a step goes; empty: nowhere
};

// Returns the process's exit code; what is wrong goes to stderr.
int TraceCommand(const TraceFlags& flags);

}  // namespace thinwire
