// The gradient of one piece (models/pieces.h) in the memory of its parameters.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/pieces.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "tensor/tensor.h"

namespace thinwire {

class PieceMemory {
 public:
  // Makes the memory of `piece`, of a list of parameters of which `parameters` are the pointers.
  // They, the device and `ops` outlive it.
  PieceMemory(Piece piece, const std::vector<Parameter*>& parameters, Device* device, Ops* ops);

  const Piece& piece() const { return piece_; }
  // Returns whether the piece is of the copy of a tied weight, which is exchanged with its
  // original.
  bool is_copy() const;

  // Returns the gradient, fp32 of piece().shape. It shares the parameter's memory where it can.
  absl::StatusOr<Tensor> Gather() const;
  // Sets the gradient to `values`, of that shape.
  absl::Status Scatter(const Tensor& values) const;

 private:
  // Returns a part's rows of its parameter's gradient, [1, elements].
  Tensor RowsOf(size_t part) const;
  // Copies the gradient to `values` or back.
  absl::Status Copy(const Tensor& values, bool to_gradient) const;

  Piece piece_;
  std::vector<const Parameter*> of_part_;  // by part
  Device* device_;
  Ops* ops_;
};

}  // namespace thinwire
