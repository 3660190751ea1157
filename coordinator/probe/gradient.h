// The parameter gradient of one batch, put together from the stages' files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/probe/model_layout.h"

namespace thinwire {

// By segment; the trained parameters of a segment stand one after the other in model order.
using Gradient = std::vector<std::vector<float>>;

// The gradients of the parameters that one stage trains, as a safetensors file.
struct GradientFile {
  std::string stage;  // its name, for messages
  std::string bytes;
};

// More than any stage's gradients take as a file.
uint64_t MostGradientBytes(const ModelLayout& layout);

// Wants each trained parameter once, as F32 and with its number of elements. Errors are Internal
// and name the stage and what is wrong.
absl::StatusOr<Gradient> GradientFrom(const std::vector<GradientFile>& files,
                                      const ModelLayout& layout);

}  // namespace thinwire
