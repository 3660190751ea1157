// Values of a resolved experiment that nobody gave and that follow from others: `lr_schedule.t_max`
// from `epochs`, a scope from the model, a cut's entry from the general one. A file that lists them
// can be changed in one field, and what depends on that field changes with it.
#pragma once

#include <string>

#include "proto/experiment.pb.h"

namespace thinwire {

// Writes to resolved->derived the path of each field that `resolved` has and `given` lacks or sets
// to `auto`. A section without any given field is one path. Defaults that every experiment has
// (resolve.h) depend on nothing and are not listed, nor is the count of a text.
void NoteDerived(const Experiment& given, Experiment* resolved);

// Returns whether the field at `path`, or a section around it, is derived.
bool IsDerived(const Experiment& experiment, const std::string& path);

// Clears the derived fields, and `derived`, so that they are derived again after `overlay` is
// merged over the experiment. A field keeps its value, as if it had been given, if that is not what
// follows from the rest: somebody has edited the file, or another build wrote it. Fields of the
// model that come from `init` stay unless the overlay has another `init` or model; so do those of
// `lora` that come from `lora.init` unless the overlay has another.
void ForgetDerived(const Experiment& overlay, Experiment* experiment);

}  // namespace thinwire
