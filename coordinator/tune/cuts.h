// Which candidates are worth training, by what they take of the link and of the gradient.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proto/tune.pb.h"

namespace thinwire {

using TuneCandidates = google::protobuf::RepeatedPtrField<TuneCandidate>;

// The candidate of that name among `all`, which has it.
const TuneCandidate& Named(const TuneCandidates& all, const std::string& name);
// Those that have not fallen, but for `none`, in their order.
std::vector<TuneCandidate*> StillStanding(TuneCandidates* all);

// By step_seconds: those fall whose step is no faster than that of `none`, or than that of one
// that comes earlier in the same family.
void CutByPlan(TuneCandidates* all);

// By gradient_error: those fall beside which another has a faster step and a smaller error, or one
// of both equal. Of the others at most `most` stay, evenly spread from the fastest to the slowest.
// What was not probed stays, and counts among these.
void CutByError(size_t most, TuneCandidates* all);

}  // namespace thinwire
