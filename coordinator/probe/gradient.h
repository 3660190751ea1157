// The parameter gradient of one batch, assembled from the stages' files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/probe/model_layout.h"

namespace thinwire {

// Gradients by segment. The trained parameters of a segment follow each other in model order.
using Gradient = std::vector<std::vector<float>>;

// Safetensors file with the gradients of the parameters that one stage trains.
struct GradientFile {
  std::string stage;  // the stage's name, for messages
  std::string bytes;
};

// Returns an upper bound for the size of a stage's gradient file.
uint64_t MostGradientBytes(const ModelLayout& layout);

// Assembles the gradient. Each trained parameter must occur once, as F32 and with its number of
// elements. Errors are Internal and name the stage and the fault.
absl::StatusOr<Gradient> GradientFrom(const std::vector<GradientFile>& files,
                                      const ModelLayout& layout);

}  // namespace thinwire
