// How well classes are told apart, from counts of which was taken for which. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "data/glue.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Counts of the classes predicted for each label: classes x classes, label by label.
using Confusion = std::vector<uint64_t>;

// Returns 2 true positives / (2 true positives + false positives + false negatives), of class 1
// among two; 0 if there are none of them.
double F1(const Confusion& confusion);

// Returns Matthews' correlation coefficient (Matthews, 1975; for more than two classes Gorodkin,
// 2004): 1 if all predictions are right, 0 if they say nothing; also 0 if all labels or all
// predictions are one class.
double Matthews(const Confusion& confusion);

// Returns the counts, and the measures that are wanted. Internal if these are no counts of so many
// samples, or not of two classes.
absl::StatusOr<ClassMeasures> MeasureClasses(const Confusion& confusion, uint64_t samples,
                                             const GlueMeasures& wanted);

}  // namespace thinwire
