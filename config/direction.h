// The entries of both directions of a cut, and of weights' gradients: access, defaults and checks.
// Weights' gradients are those of a tied weight (models/tied_weight.h), and what replicas exchange
// (replicas.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Access to the entry of one direction of a section: of a CompressionConfig or a BoundaryConfig.
inline const char* DirectionName(bool gradient) { return gradient ? "gradients" : "activations"; }
template <typename Section>
bool HasDirection(const Section& section, bool gradient) {
  return gradient ? section.has_gradients() : section.has_activations();
}
template <typename Section>
const DirectionConfig& DirectionIn(const Section& section, bool gradient) {
  return gradient ? section.gradients() : section.activations();
}
template <typename Section>
DirectionConfig* MutableDirectionIn(bool gradient, Section* section) {
  return gradient ? section->mutable_gradients() : section->mutable_activations();
}

// Returns the cut's own entries; empty if it has none.
const BoundaryConfig& OwnOf(const CompressionConfig& compression, const std::string& cut);

// Fills in defaults and checks all values. `path` is the entry's place in the file. InvalidArgument
// names the field, the value met and what is wanted.
absl::Status ResolveDirection(const std::string& path, bool gradient, DirectionConfig* direction);

// Checks a direction, at place `path` of the file, against the rest of the experiment.
absl::Status CheckRest(const std::string& path, const Experiment& experiment,
                       const DirectionConfig& direction);

// Checks that coding a message needs none of those before it, nor one of the other direction.
// InvalidArgument names the field and says of whom that is asked: "sums over parts remember".
absl::Status CheckRemembersNothing(const std::string& path, const DirectionConfig& direction,
                                   bool gradient, const std::string& who);

// Checks what both directions of a cut and the rest of the experiment must agree on. `compression`
// must be resolved except for that. The error names the cut.
absl::Status CheckCompressionAt(const Experiment& experiment, const std::string& cut);

// Does what ResolveDirection does. InvalidArgument also names what works only for microbatches of
// samples.
absl::Status ResolveOfWeight(const std::string& path, bool gradient, DirectionConfig* direction);

// Returns whether a tied weight of the model has its two copies on different sides of these cuts.
// InvalidArgument if a cut has the name of that exchange.
absl::StatusOr<bool> HasTiedCut(const Experiment& experiment, const std::vector<std::string>& cuts);

// Fills in compression.boundaries.tied. Its directions default to `none`, not to the general
// entries.
absl::Status ResolveTied(CompressionConfig* compression);

}  // namespace thinwire
