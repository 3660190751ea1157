// Suggestions ("did you mean") for a name that is no field of an experiment.
#pragma once

#include <string>

#include "google/protobuf/descriptor.h"

namespace thinwire {

// Returns the field of an experiment at `path`, in which lists and maps have no steps; null if
// there is none.
const google::protobuf::FieldDescriptor* FieldAt(const std::string& path);

// Returns what `name`, which is no field of `section`, probably means: a field of that section, or
// the path from the root of a field elsewhere. A synonym (synonyms.h) takes precedence over a
// misspelling, and that section over others. Case, '-' and '_' are ignored.
std::string Suggestion(const google::protobuf::Descriptor& section, const std::string& name);

// Returns the path from the root of the field that `name` alone stands for; empty if there is none.
std::string PathOf(const std::string& name);

}  // namespace thinwire
