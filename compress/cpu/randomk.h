// randomk: K entries of each scope by random draws, from a seed in the payload, so that no index is
// sent; zeros among them too. Element i draws number i of the seed's random stream, and the K
// highest of each scope are kept, of those with support. `unbiased` makes the tensor the mean over
// all seeds (Wangni et al., NeurIPS 2018).
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuRandomKEncode;
CpuDecode CpuRandomKDecode;

}  // namespace thinwire
