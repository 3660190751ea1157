// The codecs that send some entries of a tensor; the rest are zeros.
//
// topk: the K entries of largest magnitude of each scope, ties to the lower index (Aji & Heafield,
// EMNLP 2017; per sample in arXiv 2401.07788, per tensor in 2301.02654). Zeros are never sent, so
// that a scope with fewer than K non-zeros arrives whole, unless pad is exact_k.
//
// threshold: the entries of at least a magnitude, which may be a multiple of the message's root
// mean square or of its largest magnitude (Strom, Interspeech 2015, for the fixed one).
//
// Both say where the entries stood by bitmap, packed indices or Rice-coded gaps, whichever is
// smallest for the message.
//
// randomk: K entries of each scope by lot, from a seed in the payload, so that no index is sent;
// zeros among them too. `unbiased` makes the tensor the mean over all seeds (Wangni et al.,
// NeurIPS 2018).
//
// With support, K still counts all elements of a scope, and only supported ones are chosen.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

// topk with indices own, threshold or randomk.
std::unique_ptr<Codec> NewSparseCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
