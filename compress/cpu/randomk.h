// Codec randomk: keeps K entries of each scope by random draws, zeros among them too. The seed is
// in the payload, so no index is sent. Element i draws number i of the seed's random stream; the K
// highest draws of each scope are kept, among elements with support. `unbiased` makes the tensor
// the mean over all seeds (Wangni et al., NeurIPS 2018).
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuRandomKEncode;
CpuDecode CpuRandomKDecode;

}  // namespace thinwire
