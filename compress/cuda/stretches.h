// Arrangement of strings in rows, and sums of neighbours (compress/entropy/stretches.h,
// compress/entropy/rans.h), in device memory.
#pragma once

#include <cstdint>

#include "compress/entropy/rans.h"
#include "compress/entropy/stretches.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See ToRows and FromRows.
Error SubmitToRows(CudaDevice* device, const uint8_t* bytes, int64_t n, const RowLayout& layout,
                   uint8_t* rows);
Error SubmitFromRows(CudaDevice* device, const uint8_t* rows, int64_t n, const RowLayout& layout,
                     uint8_t* bytes);

// See SumsOfNeighbours; for all rows of a string, each within its part.
Error SubmitSumsOfNeighbours(CudaDevice* device, const Neighbours& neighbours, const uint8_t* rows,
                             int64_t num_rows, const RowLayout& layout, uint8_t* sums);

// Gathers the sample from which ChooseNeighboursOf (compress/entropy/context_choice.h) chooses,
// among n codes: `num_pieces` pieces at distance 0 and at each of the `num_distances` distances.
// `pieces_and_distances` has the pieces' begins, then the distances, in device memory.
Error SubmitSample(CudaDevice* device, const uint8_t* codes, int64_t n,
                   const uint32_t* pieces_and_distances, int64_t num_pieces, int64_t num_distances,
                   uint8_t* sample);

}  // namespace thinwire
