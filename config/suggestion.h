// "did you mean": what a name that is no field of an experiment stands for.
#pragma once

#include <string>

#include "google/protobuf/descriptor.h"

namespace thinwire {

// The field of an experiment at the path, where lists and maps take no step; null where there is
// none.
const google::protobuf::FieldDescriptor* FieldAt(const std::string& path);

// What `name`, which is no field of `section`, is likely to mean: a field of that section, or the
// path from the root of one that stands elsewhere. A synonym (synonyms.h) goes before a
// slip of the pen, that section before others. Case, '-' and '_' do not count.
std::string Suggestion(const google::protobuf::Descriptor& section, const std::string& name);

// The path from the root of the field that `name` stands for alone; empty if nothing is called so.
std::string PathOf(const std::string& name);

}  // namespace thinwire
