// HTTP server of /metrics for Prometheus and /healthz for programs that restart servers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"

struct MHD_Daemon;  // of the HTTP library

namespace thinwire {

// Sources of a server's pages.
struct MetricsSources {
  std::vector<std::shared_ptr<const prometheus::Collectable>> collectables;
  // /healthz answers 200 "ok" while this returns true, otherwise 503. Called on threads of the
  // server.
  std::function<bool()> is_healthy = [] { return true; };
  // Returns more metric families in Prometheus' text format, with names that no collectable has.
  // Called for each scrape, on threads of the server. Null: none.
  std::function<std::string()> text = nullptr;
};

// Serves while this object lives.
class MetricsServer {
 public:
  // Serves the families of `sources` and those of ProcessMetrics at http://LISTEN/metrics. `listen`
  // is host:port; it serves at all addresses of the host (ListenAt), and port 0 lets the system
  // choose. InvalidArgument if it is no address, Unavailable if it cannot be used; both name it.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& listen,
                                                              MetricsSources sources);
  ~MetricsServer();

  // Returns host:port, with the port in use.
  const std::string& address() const { return address_; }

 private:
  explicit MetricsServer(MetricsSources sources) : sources_(std::move(sources)) {}

  MetricsSources sources_;            // not changed
  std::vector<MHD_Daemon*> daemons_;  // owned; one for each address
  std::string address_;
};

}  // namespace thinwire
