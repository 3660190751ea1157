// /metrics for Prometheus and /healthz for whoever restarts servers, over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"

struct MHD_Daemon;  // of the HTTP library

namespace thinwire {

struct MetricsSources {
  std::vector<std::shared_ptr<const prometheus::Collectable>> collectables;
  // /healthz answers 200 "ok" while it is true, else 503. On threads of the server.
  std::function<bool()> is_healthy = [] { return true; };
  // Further families, in Prometheus' text, of names that no collectable has; asked for at each
  // scrape, on threads of the server. Null: none.
  std::function<std::string()> text = nullptr;
};

// Serves for as long as this object lives.
class MetricsServer {
 public:
  // Serves the sources' families and those of ProcessMetrics at http://LISTEN/metrics, host:port,
  // at all addresses of the host (ListenAt); port 0 lets the system choose. InvalidArgument for
  // what is no address, Unavailable where it cannot be served at; both name it.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& listen,
                                                              MetricsSources sources);
  ~MetricsServer();

  // host:port, with the port that was taken.
  const std::string& address() const { return address_; }

 private:
  class Pages;

  MetricsServer(MetricsSources sources);

  const std::unique_ptr<const Pages> pages_;
  std::vector<MHD_Daemon*> daemons_;  // owned; one for each address
  std::string address_;
};

}  // namespace thinwire
