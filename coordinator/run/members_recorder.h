// The record of who came to a run and went, in its summary and on /metrics. docs/metrics.md has a
// row for each series.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "coordinator/run/observer.h"
#include "coordinator/session/members.h"
#include "prometheus/registry.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

class MembersRecorder final : public RunObserver {
 public:
  // `counts` says who is there; nothing where membership is closed, and then there is no record.
  // `registry` and `summary` outlive this object.
  using Counts = std::function<std::optional<MemberCounts>()>;
  MembersRecorder(const std::string& run, Counts counts, prometheus::Registry* registry,
                  Summary* summary);
  ~MembersRecorder() override;

  absl::Status OnStart(const RunPlan& plan) override;
  absl::Status OnStep(const StepRecord& step) override;
  absl::Status OnTotals(const RunTotals& totals) override;
  absl::Status OnEvent(const RunEvent& event) override;

 private:
  struct Series;
  absl::Status Update();

  const std::string run_;
  const Counts counts_;
  prometheus::Registry& registry_;
  Summary& summary_;
  uint64_t last_step_ = 0;
  uint64_t repeated_steps_ = 0;
  bool is_interrupted_ = false;     // from an event to the next step
  std::unique_ptr<Series> series_;  // once there is something to show
};

}  // namespace thinwire
