// Warm start of low_rank: the factor Q that one message's power iteration leaves to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// Returns the Q in a payload for a tensor of `shape`: fp32 [columns, rank], or [samples, columns,
// rank] with per_sample. InvalidArgument unless the payload has the length for that tensor.
absl::StatusOr<Tensor> WarmStartOf(const CodecSpec& spec, absl::Span<const uint8_t> payload,
                                   const Shape& shape);

// Returns `warm_start` as kernels take it (KernelContext). Null if it is not low_rank's or does not
// fit this shape. It is the tensor's own memory if that has a factor for each matrix; otherwise a
// copy in *padded, with zeros for the missing factors, which start afresh.
const float* WarmStartFor(const CodecSpec& spec, const Shape& shape, const Tensor& warm_start,
                          std::vector<float>* padded);

}  // namespace thinwire
