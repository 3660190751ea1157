// The coordinator's series on /metrics. docs/metrics.md has a row for each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/run/observer.h"
#include "coordinator/run/pace.h"
#include "prometheus/registry.h"

namespace thinwire {

// Series of one run, labelled with its id. Label sets are looked up once, here.
class RunMetrics final : public RunObserver {
 public:
  // `cuts` are the boundaries' names. `registry` must outlive this object.
  RunMetrics(const std::string& run, const std::vector<std::string>& cuts,
             prometheus::Registry* registry);
  ~RunMetrics() override;

  // Records that the run ended with `error`.
  void Failed(const absl::Status& error);

  absl::Status OnStart(const RunPlan& plan) override;
  absl::Status OnStep(const StepRecord& step) override;
  absl::Status OnTotals(const RunTotals& totals) override;
  absl::Status OnEvaluated(const EvaluationRecord& evaluation) override;
  absl::Status OnEpoch(const EpochRecord& epoch) override;
  absl::Status OnCheckpoint(const CheckpointManifest& manifest) override;
  absl::Status OnEvent(const RunEvent& event) override;

 private:
  struct Series;
  Pace pace_;
  std::unique_ptr<Series> series_;
};

}  // namespace thinwire
