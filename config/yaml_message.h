// YAML into any protobuf message and back, by reflection. Fields may be string, bool, uint32,
// uint64, double, a message, a list of strings, uint64 or messages, or a map from strings to
// messages.
//
// The rules: keys are the fields' names. Text fields take any scalar as it stands (`threads: 2`).
// Numbers and booleans are never narrowed, rounded or read out of quotes. A list replaces the list
// that was there; messages and maps are merged. A list of strings or numbers takes one scalar as
// its only element. As a protobuf list cannot tell "empty" from "absent", an empty `pipeline.cuts`
// is stored, and may be written, as the one element "none"; without a value (`cuts:`) it is an
// error in a file and empty in an override. Other lists of strings or numbers are never empty.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "config/origins.h"
#include "config/yaml_tree.h"
#include "google/protobuf/message.h"

namespace thinwire {

inline constexpr char kEmptyList[] = "none";

// Merges one YAML document over `*message`. `source` is the file's name, for errors, which say
// "FILE:LINE: full.path: ...": an unknown field names the nearest valid one and all of them, a
// value of the wrong type is shown beside what is wanted. After an error `*message` is part merged.
// `origins`, unless null, learns where each field was given.
absl::Status MergeYaml(const std::string& text, const std::string& source,
                       google::protobuf::Message* message, Origins* origins = nullptr);

// Merges "path.to.field=VALUE", VALUE in YAML: `pipeline.cuts=[layer1, layer2]`. Keys of maps stand
// in the path like fields and may hold dots: `compression.boundaries.layer1.0.gradients.bits=4`.
// Nothing, or null, clears a field of text, a number or a truth value. Errors as above, with "--set
// path.to.field=VALUE" for the file.
absl::Status Override(const std::string& assignment, google::protobuf::Message* message,
                      Origins* origins = nullptr);

// The path of the field that an override clears; empty for one that sets a field, and for a
// malformed one.
std::string ClearedBy(const std::string& assignment, const google::protobuf::Message& message);

// Makes the field of that path, spelt as in Override, absent. Sections around it stay. A path that
// leads nowhere changes nothing.
void ClearField(const std::string& path, google::protobuf::Message* message);

// Every field that is set, in the schema's order: MergeYaml makes an equal message of it.
std::string WriteYaml(const google::protobuf::Message& message);

}  // namespace thinwire
