// Times at which replicas that train locally exchange each fragment of the parameters, and at which
// they take the result (Streaming DiLoCo; Douillard et al., 2025). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "config/replicas_spec.h"

namespace thinwire {

// A step's place in its epoch, from 1, and the number of the epoch's steps. Rounds begin anew with
// each epoch.
struct StepOfEpoch {
  int64_t place = 0, steps = 0;

  bool is_last() const { return place == steps; }
};

// Returns the fragments that replicas contribute to behind the step, ascending. Fragment f of F has
// its turn after f every / F steps of a round, and fragment 0 after the last. Behind the last step
// of an epoch all have it.
std::vector<int> FragmentsSent(const ReplicasSpec& replicas, const StepOfEpoch& step);

// Returns the fragments whose result all replicas take behind the step: those that were sent
// `overlap` steps before in the epoch, or all behind its last step.
std::vector<int> FragmentsTaken(const ReplicasSpec& replicas, const StepOfEpoch& step);

}  // namespace thinwire
