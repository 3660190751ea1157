// Choice of the entries that topk and randomk keep, as a bitmap over a tensor's elements.
#pragma once

#include <cstdint>

#include "compress/cuda/keys.h"
#include "compress/layout.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Overwrites `kept`, BitmapBytes(scopes.total) of device memory. The scopes are `scopes`;
// keys.elements is ignored. Sets *nonfinite, in device memory, to 1 if anything with support is NaN
// or infinite; what is kept then means nothing. `nonfinite` may be null.
//
// It passes over the tensor once for scopes of up to 8192 elements (select.h) and twice for larger
// ones. If there are many of these, the second pass finds them in the cache (block_select.cu); if
// not, some percent of them are read again (radix_select.cu). For channels two more passes make a
// copy in which they lie one after the other. Draws are written to memory only for small scopes and
// channels.
Error SubmitKeepLargest(CudaDevice* device, const Keys& keys, const Scopes& scopes,
                        const KeepRule& rule, uint32_t* kept, uint32_t* nonfinite);

}  // namespace thinwire
