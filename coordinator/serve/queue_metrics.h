// Prometheus metrics of a server: its queue, and the series of each run while it runs.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "monitoring/metrics_server.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace thinwire {

// Thread-safe. Must outlive the server that uses its sources.
class QueueMetrics {
 public:
  QueueMetrics();

  MetricsSources sources();

  // Shows the run's series from the moment when its folder says where they are, until Ended.
  void Begun(const std::string& run, const std::string& folder);
  void Ended(const std::string& run);
  // Sets the number of runs by state (RunQueue::Count).
  void Show(const std::map<std::string, size_t>& counts);

 private:
  // Returns the series of all running runs as one text; a run that does not answer is left out.
  std::string Text();

  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  prometheus::Family<prometheus::Gauge>& runs_;
  absl::Mutex mutex_;
  std::map<std::string, std::string> folders_ ABSL_GUARDED_BY(mutex_);  // folder by run
};

}  // namespace thinwire
