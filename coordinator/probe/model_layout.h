// Place of each trained parameter within the model's segments.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Segments of a model and the ranges of their parameters.
struct ModelLayout {
  // Elements [first, first + elements) of the trained elements of a segment, in model order.
  struct Range {
    size_t segment = 0, first = 0, elements = 0;
  };
  std::vector<std::string> segments;     // "stem to layer1.1", in model order
  std::vector<size_t> trained_elements;  // by segment
  // By the name of the trained parameter; tied copies have none.
  std::map<std::string, Range> ranges;
};

// Returns the layout of the model of a resolved experiment.
absl::StatusOr<ModelLayout> LayoutOf(const Experiment& experiment);

}  // namespace thinwire
