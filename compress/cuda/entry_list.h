// What is kept, as lists: the values and where they stood, in memory order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// A bitmap of `elements` bits with its tile offsets (bitmap.h), in device memory; null words stand
// for all ones.
struct RankedBits {
  const uint32_t* words = nullptr;
  const uint64_t* offsets = nullptr;
};

// Where the lists go, in device memory, with room for as many entries as bits are set.
struct EntryList {
  void* values = nullptr;              // of values_dtype
  DType values_dtype = DType::kF32;    // or kBF16
  uint32_t* indices = nullptr;         // unless null: of elements
  uint32_t* largest = nullptr;         // unless null: becomes at least each magnitude
  uint32_t* largest_of_all = nullptr;  // the same of all elements, kept or not
};

// Lists the elements of x whose bits are set in `kept`.
Error SubmitEntryList(cudaStream_t stream, const TensorView& x, const RankedBits& kept,
                      const EntryList& list);

}  // namespace thinwire
