// The coordinator's series on /metrics. docs/metrics.md has a row for each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/run/observer.h"
#include "coordinator/run/pace.h"
#include "prometheus/exposer.h"
#include "prometheus/registry.h"

namespace thinwire {

// Series of one run, labelled with its id. Label sets are resolved here once.
class RunMetrics final : public RunObserver {
 public:
  // `cuts`: the boundaries' names. `registry` outlives this object.
  RunMetrics(const std::string& run, const std::vector<std::string>& cuts,
             prometheus::Registry* registry);
  ~RunMetrics() override;

  absl::Status OnStart(const RunPlan& plan) override;
  absl::Status OnStep(const StepRecord& step) override;
  absl::Status OnTotals(const RunTotals& totals) override;
  absl::Status OnEpoch(const EpochRecord& epoch) override;

 private:
  struct Series;
  Pace pace_;
  std::unique_ptr<Series> series_;
};

// /metrics over HTTP, for as long as this object lives.
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
