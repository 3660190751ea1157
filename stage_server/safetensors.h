// Parameters as a safetensors file: eight bytes of header length, a JSON header, raw tensors
// (https://huggingface.co/docs/safetensors). PyTorch names and layouts, fp32.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nn/segment.h"

namespace thinwire {

// Hands the file to `sink` in pieces of at most `piece_bytes`, in order; stops at its first error.
absl::Status WriteSafetensors(const std::vector<const Parameter*>& parameters, size_t piece_bytes,
                              const std::function<absl::Status(std::string_view)>& sink);

}  // namespace thinwire
