// What both ends of a compensated direction are made from.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/codecs/axes.h"
#include "compress/feedback/spec.h"
#include "compress/feedback/state_store.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

struct FeedbackOptions {
  FeedbackSpec spec;
  Shape sample;                 // of one sample, the first extent 1
  DType compute = DType::kF32;  // of the tensors that come and go: fp32 or bf16
  Device* device = nullptr;     // of tensors and state; outlives what is made, as do the kernels
  CodecKernels* kernels = nullptr;
};

absl::StatusOr<std::unique_ptr<StateStore>> NewStateStore(const FeedbackOptions& options);

// The axes of messages that have such samples, from their bytes. InvalidArgument if those are
// malformed or of other messages.
absl::StatusOr<std::shared_ptr<const Axes>> AxesOf(const FeedbackOptions& options,
                                                   absl::Span<const uint8_t> bytes);

// InvalidArgument unless a message of this shape has such samples and as many rows.
absl::Status CheckMessage(const FeedbackOptions& options, const Shape& shape, size_t num_rows);

}  // namespace thinwire
