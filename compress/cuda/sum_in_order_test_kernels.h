// Calls SumInOrder by one block from tests, between host memory.
#pragma once

#include <vector>

#include "tensor/cuda/device.h"

namespace thinwire {

// Sets sums[i] to the sum that thread i got.
Error SumInOrderByAll(CudaDevice* device, const std::vector<double>& values,
                      std::vector<double>* sums);

}  // namespace thinwire
