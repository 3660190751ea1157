// Our own codecs: what a backend's kernels write and read, handed on as they are.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

// `spec` is of any kind but kPlugin, without lossless stage and, but for topk with indices of its
// own, threshold and randomk, without support.
std::unique_ptr<Codec> NewKernelCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
