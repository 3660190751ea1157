// Which codecs a tune considers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"
#include "proto/tune.pb.h"

namespace thinwire {

inline constexpr char kNone[] = "none";

// The built-in pairs, with name, family and compression; of a family the gentlest first. What they
// are good for was measured for these kinds of model (docs/results.md): networks whose activations
// are sparse behind ReLUs, and language models, whose are dense.
std::vector<TuneCandidate> StandardPairs(bool tokens);

// One that a user gives, a codec or "A | G" as ParseCodecPair has it, called given-`number`.
absl::StatusOr<TuneCandidate> GivenPair(const std::string& text, const std::string& parameters,
                                        int number);

// The experiment's own compression, "own"; empty where it has none.
std::vector<TuneCandidate> OwnPair(const Experiment& experiment);

// The resolved `experiment` with the compression of `candidate` and no other, and with its
// microbatches unless they are 0; resolved. Errors of Resolve, behind the candidate's name.
absl::StatusOr<Experiment> WithCandidate(Experiment experiment, const TuneCandidate& candidate);

// "topk(ratio=0.1, …) | fp8(…)": the general codecs of a resolved experiment, with what is done
// about their error.
absl::StatusOr<std::string> CodecsText(const Experiment& experiment);

// Adds `none` and all that the report's task considers, codecs spelled out, to the report's
// candidates; what the model or this build refuses is left out, with why. Errors of GivenPair, and
// of the experiment without compression. `resolved`: the experiment; `tokens`: whether its model
// takes them.
absl::Status AddCandidates(const Experiment& resolved, bool tokens, TuneReport* report);

}  // namespace thinwire
