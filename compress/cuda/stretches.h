// A string's stretches side by side, and what foretells its bytes (compress/cpu/stretches.h,
// compress/cpu/rans.h), in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cpu/rans.h"
#include "tensor/error.h"

namespace thinwire {

// See ToRows and FromRows.
Error SubmitToRows(cudaStream_t stream, const uint8_t* bytes, int64_t n, uint8_t* rows);
Error SubmitFromRows(cudaStream_t stream, const uint8_t* rows, int64_t n, uint8_t* bytes);

// See SumsOfNeighbours; of all rows.
Error SubmitSumsOfNeighbours(cudaStream_t stream, const Neighbours& neighbours, const uint8_t* rows,
                             int64_t num_rows, uint8_t* sums);

// The rows of which ChooseNeighboursOf (compress/context_choice.h) chooses, of n codes:
// `num_parts` times kSampledRows rows for the distance 0 and each of the `num_distances`.
// `parts_and_distances`: one behind the other, in device memory.
Error SubmitSample(cudaStream_t stream, const uint8_t* codes, int64_t n,
                   const uint32_t* parts_and_distances, int64_t num_parts, int64_t num_distances,
                   uint8_t* sample);

}  // namespace thinwire
