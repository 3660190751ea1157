// Built-in codecs: they hand on what a backend's kernels write and read.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

// Returns the context as kernels take it. *support, at which the result may point, outlives it.
// InvalidArgument if `spec` needs a support and the message has none of `elements` elements.
absl::StatusOr<KernelContext> KernelContextOf(const CodecSpec& spec, const MessageContext& context,
                                              int64_t elements, SupportView* support);

// Returns the codec that passes its calls to `kernels`. `spec` is of any kind but kPlugin and has
// no lossless stage. It has no support either, except for topk with indices of its own, threshold
// and randomk.
std::unique_ptr<Codec> NewKernelCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
