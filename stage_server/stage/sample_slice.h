// A slice of sequences, as a training step sends them (schedule terapipe).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "stage_server/stage/model_chunk.h"

namespace thinwire {

// The positions [first, first + count) of samples with `positions` each: of token ids
// [samples, positions] in host memory and of labels, or what of both there is.
absl::StatusOr<Samples> PositionsOf(const Samples& samples, int64_t positions, int64_t first,
                                    int64_t count);

}  // namespace thinwire
