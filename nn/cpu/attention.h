// Causal self-attention; contract in nn/ops.h. Each group of heads of a sample is computed by one
// thread. So results depend neither on the thread count nor on the batch around a sample.
#pragma once

#include <memory>

#include "nn/ops.h"

namespace thinwire::cpu {

// Makes an attention for a valid `spec` (nn/attention_checks.h). It computes in fp32, whatever the
// compute type.
std::unique_ptr<Attention> NewAttention(int threads, const AttentionSpec& spec);

}  // namespace thinwire::cpu
