// Which parameter of a model stands in which segment, and at which stage.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/safetensors.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct ModelLayout {
  // Elements [first, first + elements) of those that a segment trains, in model order.
  struct Range {
    size_t segment = 0, first = 0, elements = 0;
  };
  std::vector<std::string> segments;     // "stem to layer1.1", in model order
  std::vector<size_t> trained_elements;  // by segment
  std::map<std::string, Range> ranges;   // by name of the trained parameter
  // Names of the tensors of parameters and buffers, in model order; a copy's is that of the weight
  // to which it is tied.
  std::vector<std::vector<std::string>> at_stage;
};

// The layout of the model of a resolved experiment.
absl::StatusOr<ModelLayout> LayoutOf(const Experiment& experiment);

// The saved tensors of each stage, in model order; what is missing is left to the stage to notice.
// InvalidArgument names a tensor that the model does not have.
absl::StatusOr<std::vector<Safetensors>> SharesOf(const ModelLayout& layout,
                                                  const std::vector<StoredTensor>& tensors);

}  // namespace thinwire
