// Copies between whole samples, [samples, positions, features], and the rows of slices of their
// positions (models/position_slices.h).
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/position_slices.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire {

// Allocates the rows of the slices here, for samples like those of `whole`, or whole samples, for
// `rows`.
absl::StatusOr<Tensor> NewRows(const Tensor& whole, const PositionSlices& slices);
absl::StatusOr<Tensor> NewWhole(const Tensor& rows, const PositionSlices& slices);

// Returns the rows of the slices here.
absl::StatusOr<Tensor> SlicesOf(const Tensor& whole, const PositionSlices& slices, Ops* ops);

// Returns some of the rows, as they are in memory.
TensorView RowsAt(const Tensor& rows, const IndexRange& range);

// Returns slice number `group` of those here as a tensor [samples, its positions, features] in the
// memory of `rows`, which it holds.
Tensor SliceAt(const Tensor& rows, const PositionSlices& slices, int group);

// Copies a slice, [samples, its positions, features], to its place in whole samples.
absl::Status PutSlice(const Tensor& slice, int index, const PositionSlices& slices,
                      const Tensor& whole, Ops* ops);

}  // namespace thinwire
