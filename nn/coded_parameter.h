// Parameters whose values are held in few bits (ParameterSpec::format).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/parameters.h"

namespace thinwire {

// Allocates a parameter's codes and scales, which are undefined.
absl::Status AllocateCodes(Parameter* parameter, Device* device);

// Overwrites rows, from `first_row` on, of a parameter of any format. InvalidArgument, naming the
// parameter, if it is held in few bits and a value is not finite.
absl::Status WriteRows(const Parameter& parameter, int64_t first_row,
                       absl::Span<const float> values);

// Reads such rows. It may run on any thread while nobody writes them.
absl::Status ReadRows(const Parameter& parameter, int64_t first_row, absl::Span<float> values);

// Copies a parameter's value, in the format that it has, to host memory.
absl::StatusOr<Parameter> CopiedToHost(const Parameter& parameter);

}  // namespace thinwire
