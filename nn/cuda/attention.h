// Self-attention; contracts in nn/ops.h.
//
// A block of queries loads keys and values into shared memory, one block of positions after the
// other. Its softmax is carried on by the greatest score and the sum so far. The backward pass
// computes the scores again from log_sum_exp: once for dq by blocks of queries, and once for dk and
// dv by blocks of keys. So no result is added to by two blocks (FlashAttention-2; Dao, 2023). bf16
// heads of 32, 64 and 128 use tensor cores. Their factors are bf16, including the softmax's
// results; all other arithmetic is fp32. A library computes what it has faster kernels for: whole
// sequences in bf16 without dropout, lengths, windows and first keys (fused_attention.h).
#pragma once

#include "nn/cuda/fused_attention.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Makes an attention for a valid `spec`. `fused` outlives *attention, which the caller deletes;
// null: no library.
Error NewAttention(CudaDevice* device, const AttentionSpec& spec, FusedAttention* fused,
                   Attention** attention);

}  // namespace thinwire::cuda
