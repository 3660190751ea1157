// Facts about compensation before any message: whether it works with a codec, and how many bytes it
// takes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "compress/feedback/spec.h"
#include "compress/spec.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace thinwire {

// Checks that feedback can work with the codec. State may grow without bound unless C is a
// contraction, ||C(x) - x||^2 <= (1 - d) ||x||^2 with d > 0 (Karimireddy et al., arXiv 1901.09847).
// Also, ef_mixed_b must be able to halve the budget. InvalidArgument names both, the value met and
// those wanted. Codecs whose d depends on the values pass: see MeasureContraction.
absl::Status CheckFeedbackOf(const FeedbackSpec& spec, const CodecSpec& codec);

// Returns the codec's d for one message of normally distributed values, a fixed draw; it is at most
// 0 if C expands. InvalidArgument if the codec refuses the shape or needs a support.
absl::StatusOr<double> MeasureContraction(const Codec& codec, const Shape& shape, Device* device,
                                          CodecKernels* kernels);

// Bytes of state at each end. StateBytesOf returns them for `num_rows` rows of the shape `sample`
// (first extent 1), within limit_bytes. They are in a file if the spec says so, otherwise in
// memory.
struct StateBytes {
  uint64_t sender = 0, receiver = 0;
};
StateBytes StateBytesOf(const FeedbackSpec& spec, const Shape& sample, uint64_t num_rows);

// Returns an upper bound of the payload of a compressed message of this shape; `compute` is the
// tensors' type. InvalidArgument for a specification that NewCodec or HalvesOf refuses.
absl::StatusOr<size_t> CompensatedMaxPayloadBytes(const FeedbackSpec& spec, const CodecSpec& codec,
                                                  const Shape& shape, DType compute);

// Returns an upper bound of the payload of any message of this shape and type, also exact ones.
// Allocates nothing, and is not the least such bound.
size_t FeedbackMaxPayloadBytes(const FeedbackSpec& spec, const Codec& codec, const Shape& shape,
                               DType compute);

// Returns true if the codec's payload holds every bit of the tensor; such messages count as exact.
bool IsLossless(const CodecSpec& codec);

// For ef_mixed_b: the codecs of x and of e, which share topk's or randomk's K entries of a scope.
// If K is odd, x gets the larger half. HalvesOf returns InvalidArgument naming codec and shape if K
// is 1. It requires a codec that CheckFeedbackOf accepts.
struct Halves {
  CodecSpec x, e;
};
absl::StatusOr<Halves> HalvesOf(const CodecSpec& codec, const Shape& shape);
// Bytes in front of the two payloads: the length of the first, u64.
constexpr size_t kSplitHeaderBytes = 8;

}  // namespace thinwire
