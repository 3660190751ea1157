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
  struct Wait {
    std::string boundary, direction, end;  // "layer1", "gradient", "receive"
    double seconds = 0;
  };
  std::string run;
  int stage = 0;
  Device* device = nullptr;
  std::string device_model;  // "NVIDIA H200"; empty for the CPU
  std::vector<End> ends;
  ActivitySeconds activity;
  std::vector<Wait> waits;  // at the cuts to neighbours
};

class StageMetrics final : public prometheus::Collectable {
 public:
  // The functions are called from scrapes, on any thread. `snapshot`: nothing while no run is
  // configured; meanwhile the device shown is `idle`. Devices are there as long as the process.
  // `is_busy`: leased.
  StageMetrics(std::function<std::optional<StageSnapshot>()> snapshot,
               std::function<bool()> is_busy, Device* idle)
      : snapshot_(std::move(snapshot)), is_busy_(std::move(is_busy)), idle_(idle) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::function<std::optional<StageSnapshot>()> snapshot_;
  const std::function<bool()> is_busy_;
  Device* const idle_;
};

}  // namespace thinwire
