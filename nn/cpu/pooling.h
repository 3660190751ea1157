// Pooling, maxout and changes of width and layout; contracts in nn/ops.h.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void MaxPool(int threads, const PoolSpec& spec, const TensorView& x, const TensorView& y);
void MaxPoolBackward(int threads, const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                     const TensorView& dx);
void Maxout(int threads, int64_t group, const TensorView& x, const TensorView& y);
void MaxoutBackward(int threads, int64_t group, const TensorView& x, const TensorView& dy,
                    const TensorView& dx);
void Resize(int threads, const TensorView& x, const TensorView& y);
void GlobalAvgPool(int threads, const TensorView& x, const TensorView& y);
void GlobalAvgPoolBackward(int threads, const TensorView& dy, const TensorView& dx);
void ToChannelsFirst(int threads, const TensorView& x, const TensorView& y);
void ToChannelsLast(int threads, const TensorView& y, const TensorView& x);

}  // namespace thinwire::cpu
