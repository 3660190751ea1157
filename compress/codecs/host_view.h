// Tensors of any device as the host sees them, for choices that no kernel makes and for errors.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace thinwire {

// Returns a view of x in host memory: its own memory, or a copy in *memory.
absl::StatusOr<TensorView> OnHost(const Tensor& x, std::vector<uint8_t>* memory);

// Returns the error of codec `name` that names the first element of x that is NaN or infinite;
// `otherwise` if all are finite.
absl::Status NonFiniteIn(const Tensor& x, const char* name, const absl::Status& otherwise);

}  // namespace thinwire
