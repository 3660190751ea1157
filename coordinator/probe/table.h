// A probe's results for people and for programs.
#pragma once

#include <string>

#include "proto/probe.pb.h"

namespace thinwire {

// Tables sorted by wire bits per element and by the boundary's own error, and one of segments.
std::string ProbeMarkdown(const ProbeReport& report);

// A line per row and part of the model: "all", then each segment. RFC 4180.
std::string ProbeCsv(const ProbeReport& report);

}  // namespace thinwire
