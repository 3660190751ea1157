#include "coordinator/fleet/metrics_target.h"

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/fleet/host_port.h"

namespace thinwire {
namespace {

bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "[::]"; }

bool IsOwnMachine(const std::string& host) {
  return absl::StartsWith(host, "127.") || host == "localhost" || host == "[::1]";
}

}  // namespace

std::string MetricsTarget(const std::string& stage, const std::string& reported) {
  const absl::StatusOr<HostPort> metrics = ParseHostPort(reported);
  if (!metrics.ok()) return "";
  const absl::StatusOr<HostPort> at = ParseHostPort(stage);
  const std::string host = absl::StartsWith(stage, "unix:") || !at.ok() ? "127.0.0.1" : at->host;
  if (IsWildcard(metrics->host)) return absl::StrCat(host, ":", metrics->port);
  if (IsOwnMachine(metrics->host) && !IsOwnMachine(host)) return "";
  return reported;
}

}  // namespace thinwire
