// What topk and randomk choose: which entries of a tensor are kept, as a bitmap over its elements.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Overwrites `kept`, BitmapBytes(scopes.total) of device memory. keys.elements is not looked at:
// scopes are `scopes`. Sets *nonfinite, in device memory, to 1 if something with support is NaN or
// infinite, unless it is null; what is kept then means nothing.
//
// Passes over the tensor: one for scopes of up to 8192 elements (select.h), two for larger ones,
// the second in the cache where there are many (block_select.h), else some percent more
// (radix_select.h); for channels two more, to a copy in which they lie one behind the other. Draws
// are written only for small scopes and channels.
Error SubmitKeepLargest(CudaDevice* device, cudaStream_t stream, const Keys& keys,
                        const Scopes& scopes, const KeepRule& rule, uint32_t* kept,
                        uint32_t* nonfinite);

}  // namespace thinwire
