// topk: the K entries of largest magnitude of each scope, ties to the lower index; the rest are
// zeros (Aji & Heafield, EMNLP 2017; per sample in arXiv 2401.07788, per tensor in 2301.02654).
//
// Zeros are never sent, so that a scope with fewer than K non-zeros arrives whole, unless pad is
// exact_k. Where the entries stood is sent as bitmap, packed indices or Rice-coded gaps, whichever
// is smallest for the message.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

std::unique_ptr<Codec> NewTopKCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
