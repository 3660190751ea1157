// Lists of kept elements: their values and where they stood, in memory order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Bitmap over elements with its tile offsets (bitmap.h), in device memory. Null words stand for all
// ones.
struct RankedBits {
  const uint32_t* words = nullptr;
  const uint64_t* offsets = nullptr;
};

// Destination of the lists, in device memory, with room for as many entries as bits are set.
struct EntryList {
  void* values = nullptr;              // of type values_dtype
  DType values_dtype = DType::kF32;    // or kBF16
  uint32_t* indices = nullptr;         // indices of elements; may be null
  uint32_t* largest = nullptr;         // raised to each magnitude's bits; may be null
  uint32_t* largest_of_all = nullptr;  // likewise, over all elements, kept or not
};

// Lists the elements of x whose bits are set in `kept`.
Error SubmitEntryList(cudaStream_t stream, const TensorView& x, const RankedBits& kept,
                      const EntryList& list);

}  // namespace thinwire
