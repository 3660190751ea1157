// Weights in few bits (tensor/weight_format.h): made of numbers, and read back, in host memory.
// Codes follow from the numbers alone. What was read back gives the same codes again.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor/weight_format.h"

namespace thinwire {

// Some rows of a weight.
struct WeightCodes {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};

// Returns the codes of rows of `columns` elements. Of two NF4 levels as near, the lower one is
// taken; nearness is that of value times the fp32 1 / scale, as bitsandbytes has it.
// InvalidArgument if a value is not finite.
absl::StatusOr<WeightCodes> Quantized(WeightFormat format, int64_t columns,
                                      absl::Span<const float> rows);

// Overwrites `rows` by what the codes stand for.
void Expand(WeightFormat format, int64_t columns, const WeightCodes& from, absl::Span<float> rows);

}  // namespace thinwire
