// Softmax cross-entropy; contract in nn/ops.h. Exponentials and sums are fp64. A row is read from
// memory once and stays in the cache. Results do not depend on the thread count.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

LossSums SoftmaxCrossEntropy(int threads, const CrossEntropy& arguments);

}  // namespace thinwire::cpu
