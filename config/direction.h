// The entries of both directions of a cut: access, defaults and checks.
#pragma once

#include <string>

#include "absl/status/status.h"
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

// Checks what both directions of a cut and the rest of the experiment must agree on. `compression`
// must be resolved except for that. The error names the cut.
absl::Status CheckCompressionAt(const Experiment& experiment, const std::string& cut);

}  // namespace thinwire
