// Calls quotient.cuh from tests, between host memory.
#pragma once

#include <vector>

#include "tensor/cuda/device.h"

namespace thinwire {

// Sets quotients[i] = x[i] / d[i], with one correction or two, by Divisors or OrdinaryDivisors.
Error Quotients(CudaDevice* device, const std::vector<float>& x, const std::vector<float>& d,
                int corrections, bool is_ordinary, std::vector<float>* quotients);

}  // namespace thinwire
