#include "coordinator/run/best.h"

#include <algorithm>

namespace thinwire {

std::optional<double> BadnessOf(const std::string& by, const TestRecord& test) {
  if (!test.has_compressed() && !test.has_uncompressed()) return std::nullopt;
  const Measured& measured = test.has_compressed() ? test.compressed() : test.uncompressed();
  if (by == "loss") return measured.loss();
  if (!measured.has_accuracy()) return std::nullopt;
  return -measured.accuracy();
}

bool IsBest(const std::string& by, const TestRecord& latest,
            const google::protobuf::RepeatedPtrField<EpochRecord>& epochs,
            const google::protobuf::RepeatedPtrField<EvaluationRecord>& steps) {
  const std::optional<double> now = BadnessOf(by, latest);
  if (!now) return false;
  const auto is_beaten_by = [&](const TestRecord& test) {
    const std::optional<double> then = BadnessOf(by, test);
    return then && *then <= *now;
  };
  const auto is_beaten_by_one = [&](const auto& evaluations) {
    return std::any_of(evaluations.begin(), evaluations.end(),
                       [&](const EvaluationRecord& one) { return is_beaten_by(one.test()); });
  };
  for (const EpochRecord& epoch : epochs) {
    if (is_beaten_by(epoch.test()) || is_beaten_by_one(epoch.evaluations())) return false;
  }
  return !is_beaten_by_one(steps);
}

}  // namespace thinwire
