// low_rank: the factor Q that one message's power iteration leaves to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// Q of a payload for a tensor of `shape`, fp32: [columns, rank], per_sample [samples, columns,
// rank]. InvalidArgument unless the payload has that tensor's length.
absl::StatusOr<Tensor> WarmStartOf(const CodecSpec& spec, absl::Span<const uint8_t> payload,
                                   const Shape& shape);

// `warm_start` as a kernel takes it (KernelContext): null if it is not of low_rank or not of this
// shape, its own memory where it has a factor for each matrix of the tensor, else a copy in *padded
// with zeros behind, which start afresh.
const float* WarmStartFor(const CodecSpec& spec, const Shape& shape, const Tensor& warm_start,
                          std::vector<float>* padded);

}  // namespace thinwire
