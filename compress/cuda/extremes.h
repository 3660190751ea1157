// Least and greatest value of every scope of a tensor, needed by uniform, blockwise8 and the
// pre-scale exponents.
#pragma once

#include <cstdint>

#include "compress/layout.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Extremes of some values as keys. A key is a float's bits, changed so that keys are ordered like
// the values, with NaN at the ends. Both members start from zero and only grow, so threads may add
// to them in any order.
struct Extremes {
  uint32_t greatest;  // key of the greatest value
  uint32_t least;     // complement of the key of the least value
};

// Values that count.
enum class Counted { kAll, kFinite };

// Sets extremes[s], in device memory, for each scope. Under kFinite, a scope without finite values
// has the extremes of a zero. Only launches kernels. x is fp32 or bf16.
Error SubmitExtremes(CudaDevice* device, const TensorView& x, const Scopes& scopes, Counted counted,
                     Extremes* extremes);

}  // namespace thinwire
