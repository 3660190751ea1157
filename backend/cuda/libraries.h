// Names the libraries that convolve and multiply matrices in this plugin, for run records.
#pragma once

#include <string>

namespace thinwire {

// Returns "cuDNN 9.19.0, NVRTC 13.0, cuBLAS 13.1.0", or "..., no NVRTC, ..." where none is found.
std::string ArithmeticLibraries();

}  // namespace thinwire
