#include "stage_server/stage/sample_slice.h"

#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

// The part [first, first + count) of each row of `row` values.
void CopyPart(const int32_t* from, int64_t rows, int64_t row, int64_t first, int64_t count,
              int32_t* to) {
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * row + first, count, to + i * count);
}

}  // namespace

absl::StatusOr<Samples> PositionsOf(const Samples& samples, int64_t positions, int64_t first,
                                    int64_t count) {
  Samples part;
  part.digest = samples.digest;
  if (!samples.inputs.empty()) {
    const Shape shape = samples.inputs.shape().With(1, count);
    ASSIGN_OR_RETURN(part.inputs,
                     Tensor::Allocate(samples.inputs.device(), samples.inputs.dtype(), shape));
    CopyPart(static_cast<const int32_t*>(samples.inputs.data()), shape[0], positions, first, count,
             static_cast<int32_t*>(part.inputs.data()));
  }
  const auto rows = static_cast<int64_t>(samples.labels.size()) / positions;
  part.labels.resize(rows * count);
  CopyPart(samples.labels.data(), rows, positions, first, count, part.labels.data());
  return part;
}

}  // namespace thinwire
