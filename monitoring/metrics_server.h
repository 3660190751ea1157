// /metrics for Prometheus and /healthz for whoever restarts servers, over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitoring/process_metrics.h"
#include "prometheus/collectable.h"

struct mg_context;  // of the HTTP library
struct mg_connection;

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
  // Serves the sources' families and those of ProcessMetrics at http://LISTEN/metrics, host:port;
  // port 0 lets the system choose. Unavailable when the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& listen,
                                                              MetricsSources sources);
  ~MetricsServer();

  // host:port, with the port that was taken.
  const std::string& address() const { return address_; }

 private:
  explicit MetricsServer(MetricsSources sources) : sources_(std::move(sources)) {}
  static int ServeMetrics(mg_connection* connection, void* server);
  static int ServeHealth(mg_connection* connection, void* server);

  const MetricsSources sources_;
  const ProcessMetrics process_;
  mg_context* context_ = nullptr;
  std::string host_, address_;
  int port_ = 0;
};

}  // namespace thinwire
