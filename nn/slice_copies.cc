#include "nn/slice_copies.h"

#include <cstdint>

#include "base/status.h"

namespace thinwire {
namespace {

// Returns a view of whole samples, or of a slice of them, with a row for each sample.
TensorView SampleRows(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  return ViewOf(tensor.data(), tensor.dtype(), Shape{shape[0], shape[1] * shape[2]});
}

}  // namespace

absl::StatusOr<Tensor> NewRows(const Tensor& whole, const PositionSlices& slices) {
  const Shape& shape = whole.shape();
  return Tensor::Allocate(whole.device(), whole.dtype(),
                          {shape[0] * slices.PositionsHere(), shape[2]});
}

absl::StatusOr<Tensor> NewWhole(const Tensor& rows, const PositionSlices& slices) {
  const Shape& shape = rows.shape();
  return Tensor::Allocate(rows.device(), rows.dtype(),
                          {shape[0] / slices.PositionsHere(), slices.positions, shape[1]});
}

absl::StatusOr<Tensor> SlicesOf(const Tensor& whole, const PositionSlices& slices, Ops* ops) {
  ASSIGN_OR_RETURN(const Tensor rows, NewRows(whole, slices));
  const int64_t features = whole.shape()[2];
  for (int group = 0; group < slices.groups(); ++group) {
    const IndexRange positions = slices.Of(slices.first + group);
    ColumnCopy copy;
    copy.from = SampleRows(whole);
    copy.to = SampleRows(SliceAt(rows, slices, group));
    copy.from_column = positions.first * features;
    copy.columns = positions.count * features;
    RETURN_IF_ERROR(ToStatus(ops->CopyColumns(copy)));
  }
  return rows;
}

TensorView RowsAt(const Tensor& rows, const IndexRange& range) {
  const TensorView all = RowsOf(rows);
  auto* const first = static_cast<uint8_t*>(all.data) +
                      static_cast<size_t>(range.first * all.dims[1]) * SizeOf(all.dtype);
  return ViewOf(first, all.dtype, Shape{range.count, all.dims[1]});
}

Tensor SliceAt(const Tensor& rows, const PositionSlices& slices, int group) {
  const int64_t all = rows.shape()[0], features = rows.shape()[1];
  const IndexRange range = slices.RowsOf(group, all);
  const TensorView view = RowsAt(rows, range);
  const size_t bytes = static_cast<size_t>(view.elements()) * SizeOf(view.dtype);
  const Shape shape = {all / slices.PositionsHere(), slices.Of(slices.first + group).count,
                       features};
  return Tensor(Buffer::Wrap(rows.device(), view.data, bytes, rows.buffer()), rows.dtype(), shape);
}

absl::Status PutSlice(const Tensor& slice, int index, const PositionSlices& slices,
                      const Tensor& whole, Ops* ops) {
  ColumnCopy copy;
  copy.from = SampleRows(slice);
  copy.to = SampleRows(whole);
  copy.to_column = slices.Of(index).first * whole.shape()[2];
  copy.columns = copy.from.dims[1];
  return ToStatus(ops->CopyColumns(copy));
}

}  // namespace thinwire
