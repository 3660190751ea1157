// Softmax cross-entropy; contract in nn/ops.h. Exponentials and sums are fp64; a row is read from
// memory once and stays in the cache. Results do not depend on the thread count.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

void SoftmaxCrossEntropy(int threads, const CrossEntropy& arguments, double* loss,
                         int64_t* correct);

}  // namespace thinwire::cpu
