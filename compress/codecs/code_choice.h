// ecsq with rounding rate_distortion: codes that cost the least error and bits together, by the
// tables that the entropy coder would send for them.
//
// A code q of a value y, both in steps, costs (y - q)^2 + lambda R, with q at the mean of its cell
// and R the bits that it takes in the context of its neighbours. lambda is the slope of the
// rate-distortion curve of a uniform quantiser at high rates, where an error of 1/12 falls by a
// factor of four for each bit: (ln 2) / 6 (Gish and Pierce 1968; Sullivan and Wiegand 1998).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/frame.h"
#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// `payload`: what ecsq's kernel made of x, in host memory, with dead_zone; its bytes are at
// `codes`. Chooses each code anew among the nearest and the two below it, twice, each time by the
// tables of all codes before; then the means. Codes that have no byte stay. Equal tensors give
// equal payloads.
void ChooseCodes(const CodecSpec& spec, const TensorView& x, const CodesPlace& codes,
                 absl::Span<uint8_t> payload);

}  // namespace thinwire
