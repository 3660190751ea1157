// The usual process_* series of Prometheus' client libraries, from Linux' /proc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prometheus/collectable.h"

namespace thinwire {

// What /proc/PID/stat tells; ticks are those of sysconf(_SC_CLK_TCK).
struct ProcessStat {
  double cpu_ticks = 0;    // user and system
  double start_ticks = 0;  // after the system's start
  double virtual_bytes = 0;
  double resident_pages = 0;
};
// Nothing where the text is not of that form.
std::optional<ProcessStat> ParseProcessStat(const std::string& text);

// Of this process; read when scraped. What /proc does not tell is absent.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace thinwire
