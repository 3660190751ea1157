// Numbers of tensors in files (base/safetensors.h), widened to fp32.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

// Returns whether a type is one of those that Widened reads: F32, F16 and BF16.
bool IsFloat(std::string_view dtype);

// Returns the numbers in `bytes`; their type must pass IsFloat.
std::vector<float> Widened(std::string_view dtype, std::string_view bytes);

}  // namespace thinwire
