// Numbers of tensors in files: those of F32, F16 and BF16 as fp32.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

// Returns whether `dtype`, as a safetensors file names it, is one of the three.
bool IsFloat(std::string_view dtype);

// Returns the values of whole elements of that type, which must pass IsFloat.
std::vector<float> Widened(std::string_view dtype, std::string_view bytes);

}  // namespace thinwire
