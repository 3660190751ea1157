// Kept values as codes of a few bits: a sign and a cell of magnitudes, which is decoded at its mean
// (mean_cells.h). So no grid has to fit the tails that are kept, as it would from the largest
// value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// Writes the ValueBytes(spec, n) bytes of finite values[0, n): the means of each group, then codes.
void WriteMeanValues(const float* values, size_t n, const CodecSpec& spec, int threads,
                     uint8_t* out);

// Reads n values from ValueBytes(spec, n) bytes that are not trusted. InvalidArgument if an unused
// bit is set. Values are not finite where a mean is not.
Error ReadMeanValues(const uint8_t* from, size_t n, const CodecSpec& spec, int threads,
                     float* values);

}  // namespace thinwire
