// Parameters as a safetensors file (base/safetensors.h) and back: PyTorch names and layouts, fp32.
// A tied copy does not stand in a file: it is read from the tensor of the weight that it copies.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nn/segment.h"

namespace thinwire {

// Hands the file to `sink` in pieces of at most `piece_bytes`, in order; stops at its first error.
absl::Status WriteParameters(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                             const std::function<absl::Status(std::string_view)>& sink);

// The same for the gradients of those that are trained, under the parameters' names.
absl::Status WriteGradients(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                            const std::function<absl::Status(std::string_view)>& sink);

// Overwrites the values with those of the file. InvalidArgument names a tensor that is missing or
// left over, or whose type or shape differs, DataLoss what makes it no safetensors file; nothing is
// written then. The segments' ParametersChanged is the caller's duty.
absl::Status ReadParameters(std::string_view file, const std::vector<const Parameter*>& parameters);

}  // namespace thinwire
