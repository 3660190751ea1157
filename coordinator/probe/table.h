// Results of a probe for people and for programs.
#pragma once

#include <string>

#include "proto/probe.pb.h"

namespace thinwire {

// Returns tables sorted by wire bits per element and by the boundary's own error, and one of
// segments.
std::string ProbeMarkdown(const ProbeReport& report);

// Returns a CSV (RFC 4180) with a line per row and part of the model: "all", then each segment.
std::string ProbeCsv(const ProbeReport& report);

}  // namespace thinwire
