// fused_attention.h for the emulator, which has none.
#include "nn/cuda/fused_attention.h"

namespace thinwire::cuda {

std::unique_ptr<FusedAttention> NewFusedAttention(CudaDevice*, const OpsOptions&) {
  return nullptr;
}

}  // namespace thinwire::cuda
