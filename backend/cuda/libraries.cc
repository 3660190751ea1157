#include "backend/cuda/libraries.h"

#include <cublasLt.h>
#include <cudnn.h>

#include "absl/strings/str_cat.h"

namespace thinwire {

std::string ArithmeticLibraries() {
  const size_t cudnn = cudnnGetVersion();      // 91900: 9.19.0
  const size_t cublas = cublasLtGetVersion();  // 130100: 13.1.0
  return absl::StrCat("cuDNN ", cudnn / 10000, ".", cudnn / 100 % 100, ".", cudnn % 100,
                      ", cuBLAS ", cublas / 10000, ".", cublas / 100 % 100, ".", cublas % 100);
}

}  // namespace thinwire
