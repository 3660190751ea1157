// Softmax cross-entropy; contract in nn/ops.h.
#pragma once

#include <cstdint>

#include "nn/ops.h"

namespace thinwire::cpu {

void SoftmaxCrossEntropy(const CrossEntropy& arguments, double* loss, int64_t* correct);

}  // namespace thinwire::cpu
