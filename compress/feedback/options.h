// Options from which both ends of a compensated direction are made.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "compress/feedback/spec.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Specification, shape and place of one end.
struct FeedbackOptions {
  FeedbackSpec spec;
  Shape sample;                 // shape of one sample, the first extent 1
  DType compute = DType::kF32;  // type of the tensors that come and go: fp32 or bf16
  Device* device = nullptr;     // of tensors and state; it and the kernels outlive both ends
  CodecKernels* kernels = nullptr;
};

// Returns InvalidArgument unless a message of this shape has such samples and `num_rows` is their
// number.
absl::Status CheckMessage(const FeedbackOptions& options, const Shape& shape, size_t num_rows);

}  // namespace thinwire
