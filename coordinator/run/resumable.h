// Which experiments can go on with a run of another.
#pragma once

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// InvalidArgument names the fields that may not differ and do: what the state of a run is about
// (model, data, batches, seeds, the kind of optimizer and of numbers). Others may: cuts, stages,
// compression, learning rate, epochs. Both are resolved.
absl::Status CheckGoesOn(const Experiment& then, const Experiment& now);

}  // namespace thinwire
