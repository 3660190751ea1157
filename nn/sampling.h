// Chooses the next token from the logits of a position. Pure functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace thinwire {

struct SamplingSpec {
  double temperature = 1;  // of softmax(logits / temperature); 0: take the first greatest logit
  int64_t top_k = 0;       // draw from the k most probable (Fan et al., ACL 2018); 0: from all
  // Draw only from the smallest number of these, most probable first, that have this share of their
  // probability (nucleus sampling; Holtzman et al., ICLR 2020).
  double top_p = 1;
};

// Checks the ranges. InvalidArgument names the parameter, its value and those wanted.
absl::Status CheckSampling(const SamplingSpec& spec);

// Returns the token at which the running sum of probabilities, of the tokens that `spec` leaves,
// passes `uniform`, in [0, 1). Of equal logits the first counts as more probable. Requires a valid
// `spec` and at least one logit; all must be finite.
int32_t SampleToken(absl::Span<const float> logits, const SamplingSpec& spec, double uniform);

}  // namespace thinwire
