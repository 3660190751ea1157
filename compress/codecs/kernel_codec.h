// Our own codecs: what a backend's kernels write and read, handed on as they are.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

// *support, which the context may point at, outlives it. InvalidArgument if the message lacks a
// support that `spec` wants of so many elements.
absl::StatusOr<KernelContext> KernelContextOf(const CodecSpec& spec, const MessageContext& context,
                                              int64_t elements, SupportView* support);

// `spec` is of any kind but kPlugin, without lossless stage and, but for topk with indices of its
// own, threshold and randomk, without support.
std::unique_ptr<Codec> NewKernelCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
