// /metrics over HTTP.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "prometheus/exposer.h"
#include "prometheus/registry.h"

namespace thinwire {

// Serves for as long as this object lives.
class MetricsServer {
 public:
  // Serves `registry` at http://LISTEN/metrics, host:port; port 0 lets the system choose.
  // Unavailable when the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& listen, std::shared_ptr<prometheus::Registry> registry);
  ~MetricsServer();

  // host:port, with the port that was taken.
  const std::string& address() const { return address_; }

 private:
  MetricsServer() = default;

  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string host_, address_;
  int port_ = 0;
};

}  // namespace thinwire
