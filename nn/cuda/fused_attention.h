// Attention by a library, if it has kernels for it; attention.cu has its own for everything else.
// fused_attention_cudnn.cc is for GPUs; the emulator has none.
#pragma once

#include <memory>

#include "nn/cuda/attention_operands.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Attention of whole sequences in bf16 without dropout, on the calling thread's stream. All
// rows are aligned to 16 bytes. Unimplemented, with nothing submitted, if the library has no
// kernel. The first call of a shape prepares it and cannot be recorded: FailedPrecondition. One
// thread at a time uses it.
class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  // Computes y and, if wanted, log_sum_exp.
  virtual Error Forward(const AttentionOperands& a) = 0;
  // Computes dq, dk and dv; with OpsOptions::deterministic they have equal bits in every run.
  virtual Error Backward(const AttentionOperands& a) = 0;
};

// Returns null if there is none.
std::unique_ptr<FusedAttention> NewFusedAttention(CudaDevice* device, const OpsOptions& options);

}  // namespace thinwire::cuda
