// The codecs that a tune considers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"
#include "proto/tune.pb.h"

namespace thinwire {

inline constexpr char kNone[] = "none";

// Returns the built-in pairs with name, family and compression; within a family the gentlest comes
// first. `tokens` selects those for language models, whose activations are dense; the others are
// for networks whose activations are sparse behind ReLUs. Measurements for both kinds of model
// chose them (docs/results.md).
std::vector<TuneCandidate> StandardPairs(bool tokens);

// Returns the pair that a user gives: a codec, or "A | G" as ParseCodecPair reads it. Its name is
// given-`number`.
absl::StatusOr<TuneCandidate> GivenPair(const std::string& text, const std::string& parameters,
                                        int number);

// Returns the experiment's own compression, called "own"; empty if it has none.
std::vector<TuneCandidate> OwnPair(const Experiment& experiment);

// Returns the resolved `experiment` with the compression of `candidate` in place of its own,
// resolved again. The candidate's number of microbatches counts too, unless it is 0. Returns the
// errors of Resolve, with the candidate's name before them.
absl::StatusOr<Experiment> WithCandidate(Experiment experiment, const TuneCandidate& candidate);

// Returns the general codecs of a resolved experiment and their feedback: "topk(ratio=0.1, …) |
// fp8(…)".
absl::StatusOr<std::string> CodecsText(const Experiment& experiment);

// Adds `none` and all that the report's task considers, codecs spelled out, to the report's
// candidates; what the model or this build refuses is left out, with why. Errors of GivenPair, and
// of the experiment without compression. `resolved`: the experiment; `tokens`: whether its model
// takes them.
absl::Status AddCandidates(const Experiment& resolved, bool tokens, TuneReport* report);

}  // namespace thinwire
