// Lists of kept elements: their values and where they stood, in memory order.
#pragma once

#include <cstdint>

#include "compress/cuda/bitmap.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Destination of the lists, in device memory, with room for as many entries as bits are set.
struct EntryList {
  TensorView values;                   // fp32 or bf16; its shape does not matter
  uint32_t* indices = nullptr;         // indices of elements; may be null
  uint32_t* largest = nullptr;         // raised to each magnitude's bits; may be null
  uint32_t* largest_of_all = nullptr;  // likewise, over all elements, kept or not
};

// Lists the elements of x whose bits are set in `kept`.
Error SubmitEntryList(CudaDevice* device, const TensorView& x, const RankedBits& kept,
                      const EntryList& list);

// Tiles of lists of entries: each block takes one tile after the other. A count in device memory
// says how many tiles hold entries.
constexpr int kEntryThreads = 256;
constexpr int kEntriesEach = 8;  // neighbours of one thread
constexpr int kEntryTile = kEntryThreads * kEntriesEach;

__host__ __device__ inline int64_t NumEntryTiles(int64_t entries) {
  return (entries + kEntryTile - 1) / kEntryTile;
}

}  // namespace thinwire
