// Where Prometheus finds the metrics of a stage.
#pragma once

#include <string>

namespace thinwire {

// `stage`: the address by which the stage was reached, "host:port" or "unix:/path". `reported`:
// what it says of its /metrics (AcquireResponse). "host:port", as seen by whoever reaches the stage
// so; empty where there is none: the stage serves none, or to its own machine only, which is
// another.
std::string MetricsTarget(const std::string& stage, const std::string& reported);

}  // namespace thinwire
