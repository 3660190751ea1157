// Causal self-attention; contracts in nn/ops.h.
//
// Keys and values of a block of positions are brought into shared memory for a block of queries,
// whose softmax goes from one to the next by the greatest score and the sum so far; the backward
// pass makes the scores again from log_sum_exp, once for dq by blocks of queries and once for dk
// and dv by blocks of keys, so that nothing is added by two blocks (FlashAttention-2; Dao, 2023).
// bf16 heads of 32, 64 and 128 go through tensor cores, whose factors are bf16, the softmax's
// results among them; everything else is fp32 arithmetic. What a library has faster kernels for,
// whole sequences in bf16 without dropout, it computes (fused_attention.h).
#pragma once

#include "nn/cuda/fused_attention.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// `spec` is a sensible one. `fused` outlives *attention, which the caller deletes; null: there is
// none.
Error NewAttention(CudaDevice* device, const AttentionSpec& spec, FusedAttention* fused,
                   Attention** attention);

}  // namespace thinwire::cuda
