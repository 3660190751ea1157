// Differences between two experiments.
#pragma once

#include <string>
#include <vector>

#include "proto/experiment.pb.h"

namespace thinwire {

// A field that differs.
struct FieldDifference {
  std::string path;         // "compression.activations.ratio"
  std::string left, right;  // YAML on one line; empty where the field is absent
};

// Returns the differences in the schema's order; fields that only `right` has come last. A list is
// one field. Both must be resolved, so that equal experiments have equal fields. `derived`, which
// lists the fields that were not given, is ignored.
std::vector<FieldDifference> Differences(const Experiment& left, const Experiment& right);

}  // namespace thinwire
