#include "compress/cuda/keys.h"
#include "compress/cuda/mark.h"
#include "compress/cuda/operations.h"

namespace thinwire {

Error CudaFindNonzeros(CudaDevice* device, const TensorView& x, uint64_t* words, int64_t* count) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  CudaScratch found(device);
  RETURN_ERROR(found.ReserveZeros(sizeof(uint64_t)));
  const LeastMarked nonzero = {1, nullptr};
  RETURN_ERROR(SubmitMark(stream, KeysOf(x, nullptr), nonzero, reinterpret_cast<uint32_t*>(words),
                          found.as<uint64_t>(), /*nonfinite=*/nullptr));
  return device->CopyToHost(count, found.as<void>(), sizeof(*count));
}

}  // namespace thinwire
