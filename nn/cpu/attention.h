// Causal self-attention; contract in nn/ops.h. A sample's heads are dealt to threads, each worked
// on by one: results do not depend on the thread count, nor on the batch around a sample.
#pragma once

#include <memory>

#include "nn/ops.h"

namespace thinwire::cpu {

// `spec` is valid (nn/attention_checks.h). Computes in fp32, whatever the compute type.
std::unique_ptr<Attention> NewAttention(int threads, const AttentionSpec& spec);

}  // namespace thinwire::cpu
