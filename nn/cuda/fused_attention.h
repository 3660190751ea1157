// Attention as a library computes it, where it has kernels for that; attention.cu has its own for
// anything else. Twins: fused_attention_cudnn.cc for GPUs; the emulator has none.
#pragma once

#include <memory>

#include "nn/cuda/attention_operands.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Causal attention of whole sequences in bf16 without dropout, submitted to the calling thread's
// stream; all rows are aligned to 16 bytes. Unimplemented, and nothing is submitted, where the
// library has no kernel. The first call of a shape prepares it and cannot be recorded:
// FailedPrecondition. One thread at a time uses what an Ops has of it.
class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  // y and, where wanted, log_sum_exp.
  virtual Error Forward(const AttentionOperands& a) = 0;
  // dq, dk and dv; with OpsOptions::deterministic of equal bits in every run.
  virtual Error Backward(const AttentionOperands& a) = 0;
};

// Null where there is none.
std::unique_ptr<FusedAttention> NewFusedAttention(CudaDevice* device, const OpsOptions& options);

}  // namespace thinwire::cuda
