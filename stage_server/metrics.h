// The stage's /metrics page: counters that the stage keeps anyway, turned into Prometheus
// families when scraped, so that nothing is looked up while training. Rows: docs/metrics.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "stage_server/boundary/statistics.h"
#include "tensor/device.h"

namespace thinwire {

struct StageSnapshot {
  struct End {
    std::string boundary, direction, codec, feedback;  // "layer1", "gradient", "topk", "ef"
    bool sender = false;
    BoundaryStatistics statistics;
  };
  int stage = 0;
  Device* device = nullptr;
  std::string device_model;  // "NVIDIA H200"; empty for the CPU
  std::vector<End> ends;
  ActivitySeconds activity{};
};

class StageMetrics final : public prometheus::Collectable {
 public:
  // `snapshot` is called from scrapes, on any thread; nothing while no run is configured.
  // Meanwhile the device shown is `idle`. Devices are there as long as the process.
  StageMetrics(std::function<std::optional<StageSnapshot>()> snapshot, Device* idle)
      : snapshot_(std::move(snapshot)), idle_(idle) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::function<std::optional<StageSnapshot>()> snapshot_;
  Device* const idle_;
};

}  // namespace thinwire
