// Which token follows, from the logits of a position. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace thinwire {

struct SamplingSpec {
  double temperature = 1;  // of softmax(logits / temperature); 0: the greatest logit, the first one
  int64_t top_k = 0;       // only from the k most probable (Fan et al., ACL 2018); 0: from all
  // Only from the fewest of these, most probable first, that have this share of their probability
  // (nucleus sampling; Holtzman et al., ICLR 2020).
  double top_p = 1;
};

// InvalidArgument names the parameter, the value met and those wanted.
absl::Status CheckSampling(const SamplingSpec& spec);

// The token where the running sum of probabilities, of those that `spec` leaves, passes `uniform`,
// in [0, 1). Of equal logits the first counts as more probable. Requires a valid `spec` and finite
// logits, at least one.
int32_t SampleToken(absl::Span<const float> logits, const SamplingSpec& spec, double uniform);

}  // namespace thinwire
