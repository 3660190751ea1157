// The stage's /metrics page. It turns counters that the stage keeps anyway into Prometheus families
// when it is scraped, so that training looks nothing up. docs/metrics.md lists the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/swap/swapper.h"
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
  struct Exchanged {
    std::string way;  // "contribution", "average"
    BoundaryStatistics statistics;
  };
  std::string run;
  int stage = 0;
  int replicas = 1;
  Device* device = nullptr;
  std::string device_model;  // "NVIDIA H200"; empty for the CPU
  std::vector<End> ends;
  ActivitySeconds activity;
  std::vector<Wait> waits;                  // at cuts to neighbours
  double replica_wait_seconds = 0;          // for the other carriers
  std::optional<double> part_wait_seconds;  // for carriers of other parts; none without parts
  std::vector<Exchanged> exchanged;         // among replicas; empty with one
  std::optional<double> drift;              // of replicas that train locally
  std::optional<BoundaryStatistics> stash;  // none without one
  uint64_t most_memory_bytes = 0;           // as in StageReport
  std::optional<SwapCounts> swap;           // likewise
};

class StageMetrics final : public prometheus::Collectable {
 public:
  // Scrapes call the functions, on any thread. `snapshot` returns nothing while no run is
  // configured; the page then shows the device `idle`. `is_busy` tells whether the server is
  // leased. Devices live as long as the process.
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
