// Codec threshold: keeps the entries of at least a magnitude. That may be a multiple of the
// message's root mean square or of its largest magnitude (Strom, Interspeech 2015, for the fixed
// one). It is computed in the order of docs/compression.md. The payload is that of entries.h, which
// has the decoder.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuThresholdEncode;

}  // namespace thinwire
