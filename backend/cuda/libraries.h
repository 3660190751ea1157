// What convolves and multiplies in this plugin, for run records.
#pragma once

#include <string>

namespace thinwire {

// "cuDNN 9.19.0, NVRTC 13.0, cuBLAS 13.1.0", or "..., no NVRTC, ...".
std::string ArithmeticLibraries();

}  // namespace thinwire
