// Which parameter of a model stands in which segment.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct ModelLayout {
  // Elements [first, first + elements) of those that a segment trains, in model order.
  struct Range {
    size_t segment = 0, first = 0, elements = 0;
  };
  std::vector<std::string> segments;     // "stem to layer1.1", in model order
  std::vector<size_t> trained_elements;  // by segment
  std::map<std::string, Range> ranges;   // by name of the trained parameter, without tied copies
};

// The layout of the model of a resolved experiment.
absl::StatusOr<ModelLayout> LayoutOf(const Experiment& experiment);

}  // namespace thinwire
