// Batch norm with residual and ReLU fused in; contracts in nn/ops.h.
//
// Training reads x twice: once for the statistics, once to normalise. Backward reads (dy, x) twice;
// the ReLU's mask is recomputed from x, or with a residual read once from y. Sums go over fixed
// spans of rows (channel_spans.h), tiles of 64 in fp32 and the tiles in fp64, so they do not depend
// on the thread count.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

Error NormalizeBatch(int threads, const BatchNormForward& arguments);
Error NormalizeByRunning(int threads, const BatchNormInference& arguments);
Error NormalizeBatchBackward(int threads, const BatchNormBackward& arguments);

}  // namespace thinwire::cpu
