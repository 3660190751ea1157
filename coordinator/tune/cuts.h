// Selection of the candidates that are worth training, by step time and by the gradient's error.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proto/tune.pb.h"

namespace thinwire {

using TuneCandidates = google::protobuf::RepeatedPtrField<TuneCandidate>;

// Returns the candidate called `name`; `all` must contain it.
const TuneCandidate& CandidateNamed(const TuneCandidates& all, const std::string& name);
// Returns the candidates that have not fallen, without `none`, in their order.
std::vector<TuneCandidate*> StillStanding(TuneCandidates* all);

// Cuts by step_seconds. A candidate falls if its step is no faster than that of `none`, or no
// faster than that of an earlier candidate of the same family.
void CutByPlan(TuneCandidates* all);

// Cuts by gradient_error. A candidate falls if another has a faster step and a smaller error, or is
// better in one and equal in the other. At most `most` candidates stay, evenly spread from the
// fastest to the slowest. Candidates that were not probed stay and count among the `most`.
void CutByError(size_t most, TuneCandidates* all);

}  // namespace thinwire
