// Batch norm with residual and ReLU fused in; contracts in nn/ops.h.
//
// Training reads x twice: for the statistics and to normalise. Backward reads (dy, x) twice. It
// recomputes the ReLU's mask from x, or with a residual reads it once from y. Sums go over fixed
// spans of rows (channel_spans.h), in fp32 within tiles of 64 rows and in fp64 over tiles. So they
// do not depend on the thread count.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

Error NormalizeBatch(int threads, const BatchNormForward& arguments);
Error NormalizeByRunning(int threads, const BatchNormInference& arguments);
Error NormalizeBatchBackward(int threads, const BatchNormBackward& arguments);

}  // namespace thinwire::cpu
