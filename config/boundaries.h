// Boundaries that messages cross: their names, and which of them remember earlier messages.
#pragma once

#include <string>
#include <vector>

#include "proto/experiment.pb.h"

namespace thinwire {

// Returns the names of the cuts of a resolved experiment in model order, and then that of the tied
// cut if there is one; empty for the uncut model.
std::vector<std::string> CutNames(const Experiment& experiment);

// Returns the same, and then the name of the sums over tensor-parallel parts if there are some.
std::vector<std::string> BoundaryNames(const Experiment& experiment);

// A direction of a cut, or the contributions of replicas.
struct Remembering {
  std::string cut;  // or kReplicas
  bool gradient = false;
  DirectionConfig direction;
};

// Returns whether the two ends of a direction remember anything.
bool HasMemory(const DirectionConfig& direction);

// Returns all directions that may remember. Of several entries for contributions it has one that
// does, if any does.
std::vector<Remembering> RememberingOf(const Experiment& experiment);

// Returns whether cuts or replicas remember earlier messages, which the machine alone has that they
// are encoded or decoded at.
bool RemembersMessages(const Experiment& experiment);

}  // namespace thinwire
