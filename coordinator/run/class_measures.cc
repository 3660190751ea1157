#include "coordinator/run/class_measures.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Places of the counts of two classes, label by label.
constexpr size_t kFalsePositives = 1, kFalseNegatives = 2, kTruePositives = 3, kTwoClasses = 4;

double Number(uint64_t count) { return static_cast<double>(count); }

}  // namespace

double F1(const Confusion& confusion) {
  const double positives = 2 * Number(confusion[kTruePositives]);
  const double errors = Number(confusion[kFalsePositives]) + Number(confusion[kFalseNegatives]);
  return positives + errors > 0 ? positives / (positives + errors) : 0;
}

double Matthews(const Confusion& confusion) {
  const auto classes = static_cast<size_t>(std::lround(std::sqrt(Number(confusion.size()))));
  double all = 0, right = 0, products = 0, labels_squared = 0, predictions_squared = 0;
  for (size_t i = 0; i < classes; ++i) {
    double label = 0, predictions = 0;
    for (size_t j = 0; j < classes; ++j) {
      label += Number(confusion[i * classes + j]);
      predictions += Number(confusion[j * classes + i]);
    }
    all += label;
    right += Number(confusion[i * classes + i]);
    products += label * predictions;
    labels_squared += label * label;
    predictions_squared += predictions * predictions;
  }
  const double scale =
      std::sqrt(all * all - labels_squared) * std::sqrt(all * all - predictions_squared);
  return scale > 0 ? (right * all - products) / scale : 0;
}

absl::StatusOr<ClassMeasures> MeasureClasses(const Confusion& confusion, uint64_t samples,
                                             const GlueMeasures& wanted) {
  const uint64_t counted = std::accumulate(confusion.begin(), confusion.end(), uint64_t{0});
  if (confusion.size() != kTwoClasses || counted != samples) {
    return absl::InternalError(absl::StrCat("the last stage reported ", confusion.size(),
                                            " counts of ", counted, " predictions, want ",
                                            kTwoClasses, " of ", samples));
  }
  ClassMeasures measures;
  *measures.mutable_confusion() = {confusion.begin(), confusion.end()};
  if (wanted.f1) measures.set_f1(F1(confusion));
  if (wanted.matthews) measures.set_matthews(Matthews(confusion));
  return measures;
}

}  // namespace thinwire
