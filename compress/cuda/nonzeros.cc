#include "compress/cuda/kernels.h"
#include "compress/cuda/keys.h"
#include "compress/cuda/mark.h"

namespace thinwire {

Error CudaKernels::FindNonzeros(const TensorView& x, uint64_t* words, int64_t* count) {
  CudaScratch found(device_);
  RETURN_ERROR(found.ReserveZeros(sizeof(uint64_t)));
  const LeastMarked nonzero = {1, nullptr};
  RETURN_ERROR(SubmitMark(device_, KeysOf(x, nullptr), nonzero, reinterpret_cast<uint32_t*>(words),
                          found.as<uint64_t>(), /*nonfinite=*/nullptr));
  return device_->CopyToHost(count, found.as<void>(), sizeof(*count));
}

}  // namespace thinwire
