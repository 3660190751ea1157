// Rate-distortion optimised quantisation: ecsq with rounding rate_distortion. Each code is the one
// that costs least in error and bits together, by the tables that the entropy coder would send.
//
// A code q of a value y, both in steps, costs (y - r)^2 + lambda R. Here r is q moved to the mean
// of its cell, and R is the number of bits of q in the context of its neighbours. The factor lambda
// is (ln 2) / 6, the slope of a uniform quantiser's rate-distortion curve at high rates. There an
// error of 1/12 falls by a factor of four for each bit (Gish and Pierce 1968; Sullivan and Wiegand
// 1998).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/frame.h"
#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// Replaces the codes in `payload`, which ecsq's kernel wrote for x with rounding dead_zone, in host
// memory; `codes` says where they are. In each of two passes every code is chosen among the nearest
// magnitude and the two below it, by tables of all codes of the pass before; then the means are
// updated. Codes that have no byte stay. Equal tensors give equal payloads.
void ChooseCodes(const CodecSpec& spec, const TensorView& x, const CodesPlace& codes,
                 absl::Span<uint8_t> payload);

}  // namespace thinwire
