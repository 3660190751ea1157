// Writer of a decoded tensor that is zero except for some elements.
#pragma once

#include <cstdint>

#include "compress/cuda/entry_list.h"
#include "compress/cuda/values.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Overwrites all of x: values[0, count) where bits are set, in order, and zeros elsewhere, also
// where more bits are set than there are values. Sets *fault to 1 if a value is NaN or infinite;
// `fault` may be null.
Error SubmitSparse(CudaDevice* device, const RankedBits& bits, const WireValues& values,
                   int64_t count, const TensorView& x, uint32_t* fault);

}  // namespace thinwire
