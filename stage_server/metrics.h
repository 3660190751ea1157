// The stage's /metrics page: counters that the stage keeps anyway, turned into Prometheus
// families when scraped, so that nothing is looked up while training. Rows: docs/metrics.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "stage_server/statistics.h"

namespace thinwire {

struct StageSnapshot {
  struct End {
    std::string boundary, direction, codec, feedback;  // "layer1", "gradient", "topk", "ef"
    bool sender = false;
    BoundaryStatistics statistics;
  };
  int stage = 0;
  std::vector<End> ends;
  ActivitySeconds activity{};
};

class StageMetrics final : public prometheus::Collectable {
 public:
  // `snapshot` is called from scrapes, on any thread; nothing while no run is configured.
  // `device_memory_bytes` likewise.
  StageMetrics(std::function<std::optional<StageSnapshot>()> snapshot,
               std::function<size_t()> device_memory_bytes)
      : snapshot_(std::move(snapshot)), device_memory_bytes_(std::move(device_memory_bytes)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::function<std::optional<StageSnapshot>()> snapshot_;
  const std::function<size_t()> device_memory_bytes_;
};

}  // namespace thinwire
