// Parameters as a safetensors file (base/safetensors.h): PyTorch names and layouts, fp32.
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

}  // namespace thinwire
