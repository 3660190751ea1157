#include "backend/cuda/libraries.h"

#include <cublasLt.h>
#include <cudnn.h>

namespace thinwire {
namespace {

// 91900: 9.19.0
std::string Spelled(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

std::string ArithmeticLibraries() {
  return "cuDNN " + Spelled(cudnnGetVersion()) + ", cuBLAS " + Spelled(cublasLtGetVersion());
}

}  // namespace thinwire
