// SumInOrder by one block, between host memory.
#pragma once

#include <vector>

#include "tensor/cuda/device.h"

namespace thinwire {

// sums[i]: what thread i got.
Error SumInOrderByAll(CudaDevice* device, const std::vector<double>& values,
                      std::vector<double>* sums);

}  // namespace thinwire
