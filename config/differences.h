// In which fields two experiments differ.
#pragma once

#include <string>
#include <vector>

#include "proto/experiment.pb.h"

namespace thinwire {

struct FieldDifference {
  std::string path;         // "compression.activations.ratio"
  std::string left, right;  // in YAML, on one line; empty where the field is absent
};

// In the schema's order, what stands in `right` alone behind. A list is one field. Both are
// resolved, so that equal experiments have equal fields. Which fields were given (`derived`) makes
// no difference.
std::vector<FieldDifference> Differences(const Experiment& left, const Experiment& right);

}  // namespace thinwire
