// The usual process_* series of Prometheus' client libraries, from Linux' /proc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prometheus/collectable.h"

namespace thinwire {

// Contents of /proc/PID/stat; ticks are those of sysconf(_SC_CLK_TCK).
struct ProcessStat {
  double cpu_ticks = 0;    // of user and system
  double start_ticks = 0;  // since the system's start
  double virtual_bytes = 0;
  double resident_pages = 0;
};
// Parses such a text; nothing if it has another form.
std::optional<ProcessStat> ParseProcessStat(const std::string& text);

// Metrics of this process, read at each scrape. Those that /proc does not have are absent.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace thinwire
