#include "coordinator/report/target.h"

namespace thinwire {

std::optional<Reached> FirstReached(const ReportedRun& run, const ReportTarget& target) {
  std::optional<Reached> reached;
  double seconds = 0;
  size_t trained = 0;
  for (const EpochRecord& epoch : run.summary.epochs()) {
    seconds += epoch.seconds();
    ++trained;
    const auto value = Evaluated(epoch, target.inference, target.measure);
    if (!value) continue;
    const bool is_there =
        target.measure == Measure::kAccuracy ? *value >= target.value : *value <= target.value;
    if (!is_there) {
      reached.reset();
      continue;
    }
    if (reached) return reached;
    reached = Reached{epoch.epoch(), seconds, Sent(run, trained).wire_bytes};
  }
  return reached;
}

}  // namespace thinwire
