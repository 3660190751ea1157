// The least and the greatest value of every scope of a tensor: what uniform, blockwise8 and the
// pre-scale exponents start from.
#pragma once

#include <cstdint>

#include "compress/layout.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Keys are the bits of floats, changed so that they are ordered like the values, with NaN at the
// ends. From zeros on both numbers only grow, so that threads may add to them in any order.
struct Extremes {
  uint32_t greatest;  // key of the greatest value
  uint32_t least;     // the complement of the key of the least
};

// Whose values count.
enum class Counted { kAll, kFinite };

// extremes[s], in device memory, of each scope; of no finite value under kFinite: of a zero.
// Launches only. x is of fp32 or bf16.
Error SubmitExtremes(CudaDevice* device, const TensorView& x, const Scopes& scopes, Counted counted,
                     Extremes* extremes);

}  // namespace thinwire
