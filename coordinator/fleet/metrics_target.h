// Address at which Prometheus finds the metrics of a stage.
#pragma once

#include <string>

namespace thinwire {

// Returns "host:port" of the stage's /metrics, as seen from here; empty if it serves none, or
// serves them to its own, other machine only. `stage` is the address by which the stage was
// reached, "host:port" or "unix:/path". `reported` is what the stage says of its /metrics
// (AcquireResponse).
std::string MetricsTarget(const std::string& stage, const std::string& reported);

}  // namespace thinwire
