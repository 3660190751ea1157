#include "coordinator/run/early_stop.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "coordinator/run/best.h"

namespace thinwire {
namespace {

// Follows the evaluations of a run in their order.
class Standstill {
 public:
  explicit Standstill(const EarlyStopConfig& config) : config_(config) {}

  void Add(const TestRecord& test, const std::string& where) {
    const std::optional<double> badness = BadnessOf(config_.metric(), test);
    if (!badness) return;
    if (*badness < best_ - config_.min_delta()) {
      best_ = *badness;
      best_at_ = where;
      since_ = 0;
    } else {
      ++since_;
    }
  }
  void Add(const EpochRecord& epoch) {
    for (const EvaluationRecord& evaluation : epoch.evaluations()) {
      Add(evaluation.test(), absl::StrCat("step ", evaluation.step()));
    }
    if (epoch.has_test()) Add(epoch.test(), absl::StrCat("epoch ", epoch.epoch()));
  }

  bool is_over() const { return since_ >= config_.patience(); }
  std::string ToString() const {
    const std::string by =
        config_.min_delta() > 0 ? absl::StrCat(" by more than ", config_.min_delta()) : "";
    const std::string best =
        best_at_.empty() ? "" : absl::StrCat(" than the ", std::abs(best_), " after ", best_at_);
    return absl::StrCat(config_.metric(), " was no better", best, by, " in ", since_,
                        since_ == 1 ? " evaluation" : " evaluations");
  }

 private:
  const EarlyStopConfig& config_;
  double best_ = std::numeric_limits<double>::infinity();
  std::string best_at_;
  uint32_t since_ = 0;  // evaluations without a gain
};

}  // namespace

std::optional<std::string> WhyToStop(const EarlyStopConfig& config,
                                     const google::protobuf::RepeatedPtrField<EpochRecord>& epochs,
                                     const EpochRecord& latest) {
  Standstill standstill(config);
  for (const EpochRecord& epoch : epochs) standstill.Add(epoch);
  standstill.Add(latest);
  if (!standstill.is_over()) return std::nullopt;
  return standstill.ToString();
}

}  // namespace thinwire
