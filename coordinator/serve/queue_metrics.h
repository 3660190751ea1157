// What a server shows Prometheus: its queue, and the series of each run while it runs.
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

// Any thread. Outlives the server of its sources.
class QueueMetrics {
 public:
  QueueMetrics();

  MetricsSources sources();

  // A run shows its series from the moment when its folder says where, until it ends.
  void Begun(const std::string& run, const std::string& folder);
  void Ended(const std::string& run);
  // Runs by state (RunQueue::Count).
  void Show(const std::map<std::string, size_t>& counts);

 private:
  // The series of all that run, as one text; of one that does not answer nothing.
  std::string Text();

  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  prometheus::Family<prometheus::Gauge>& runs_;
  absl::Mutex mutex_;
  std::map<std::string, std::string> folders_ ABSL_GUARDED_BY(mutex_);  // by run
};

}  // namespace thinwire
