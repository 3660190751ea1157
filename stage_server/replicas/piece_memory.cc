#include "stage_server/replicas/piece_memory.h"

#include <cstdint>
#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

// Alignment of the tensors that devices allocate, on which kernels of codecs may rely.
constexpr uintptr_t kAlignment = 64;

bool IsAligned(const Tensor& x) { return reinterpret_cast<uintptr_t>(x.data()) % kAlignment == 0; }

// Returns the elements from `first` on as a tensor of `shape` that shares the memory of `x`.
Tensor SharedElements(const Tensor& x, int64_t first, const Shape& shape) {
  const size_t bytes = static_cast<size_t>(shape.elements()) * sizeof(float);
  return Tensor(Buffer::Wrap(x.device(), Floats(x) + first, bytes, x.buffer()), DType::kF32, shape);
}

}  // namespace

PieceMemory::PieceMemory(Piece piece, const std::vector<Parameter*>& parameters, Device* device,
                         Ops* ops)
    : piece_(std::move(piece)), device_(device), ops_(ops) {
  for (const Piece::Part& part : piece_.parts) of_part_.push_back(parameters[part.parameter]);
}

bool PieceMemory::is_copy() const {
  return piece_.coded && !of_part_.front()->spec.tied_to.empty();
}

Tensor PieceMemory::RowsOf(size_t part) const {
  const Tensor& gradient = of_part_[part]->gradient;
  const int64_t of_row = gradient.elements() / gradient.shape()[0];
  const Piece::Part& rows = piece_.parts[part];
  return SharedElements(gradient, rows.first_row * of_row, {1, rows.rows * of_row});
}

absl::StatusOr<Tensor> PieceMemory::Gather() const {
  if (piece_.parts.size() == 1) {
    const Tensor rows = SharedElements(RowsOf(0), 0, piece_.shape);
    if (IsAligned(rows)) return rows;
  }
  ASSIGN_OR_RETURN(Tensor gathered, Tensor::Allocate(device_, DType::kF32, piece_.shape));
  RETURN_IF_ERROR(Copy(gathered, /*to_gradient=*/false));
  return gathered;
}

absl::Status PieceMemory::Scatter(const Tensor& values) const {
  return Copy(values, /*to_gradient=*/true);
}

absl::Status PieceMemory::Copy(const Tensor& values, bool to_gradient) const {
  int64_t first = 0;
  for (size_t part = 0; part < of_part_.size(); ++part) {
    const Tensor rows = RowsOf(part);
    const Tensor here = SharedElements(values, first, rows.shape());
    const Tensor& from = to_gradient ? here : rows;
    const Tensor& to = to_gradient ? rows : here;
    RETURN_IF_ERROR(ToStatus(ops_->Convert(from.view(), to.view())));
    first += rows.elements();
  }
  return absl::OkStatus();
}

}  // namespace thinwire
