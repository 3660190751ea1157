#include "coordinator/fleet/metrics_target.h"

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/host_port.h"

namespace thinwire {

std::string MetricsTarget(const std::string& stage, const std::string& reported) {
  const absl::StatusOr<HostPort> metrics = ParseHostPort(reported);
  if (!metrics.ok()) return "";
  const absl::StatusOr<HostPort> at = ParseHostPort(stage);
  const std::string host = absl::StartsWith(stage, "unix:") || !at.ok() ? "127.0.0.1" : at->host;
  if (IsEveryAddress(metrics->host)) return HostPort{host, metrics->port}.Text();
  if (IsOwnMachine(metrics->host) && !IsOwnMachine(host)) return "";
  return reported;
}

}  // namespace thinwire
