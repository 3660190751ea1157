// Overrides of single fields: "path.to.field=VALUE". Keys of maps are steps of a path and may
// contain dots: `compression.boundaries.layer1.0.gradients.bits=4`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "config/origins.h"
#include "google/protobuf/message.h"

namespace thinwire {

// Merges the VALUE, which is YAML: `pipeline.cuts=[layer1, layer2]`. An empty VALUE, or null,
// clears a field of text, number or boolean. Errors as MergeYaml (yaml_message.h), with "--set
// path.to.field=VALUE" in place of the file.
absl::Status Override(const std::string& assignment, google::protobuf::Message* message,
                      Origins* origins = nullptr);

// Returns the path of the field that an override clears; empty if it sets a field or is malformed.
std::string ClearedBy(const std::string& assignment, const google::protobuf::Message& message);

// Clears the field at `path`; sections around it stay. Does nothing if there is no such field.
void ClearField(const std::string& path, google::protobuf::Message* message);

}  // namespace thinwire
