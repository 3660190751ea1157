// Conversion between YAML and any protobuf message, by reflection. Fields may be string, bool,
// uint32, uint64, double, a message, a list of strings, uint64 or messages, or a map from strings
// to messages.
//
// Keys are the fields' names. Text fields accept any scalar literally (`threads: 2`). Numbers and
// booleans are never narrowed, rounded or read from quotes. A list replaces the former list;
// messages and maps are merged. A list of strings or numbers accepts one scalar as its only
// element. A protobuf list cannot distinguish "empty" from "absent", so an empty `pipeline.cuts` is
// stored, and may be written, as the one element "none". Without a value (`cuts:`) it is an error
// in a file and empty in an override. Other lists of strings or numbers are never empty.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "config/origins.h"
#include "config/yaml_tree.h"
#include "google/protobuf/message.h"

namespace thinwire {

inline constexpr char kEmptyList[] = "none";

// Merges one YAML document into `*message`. Errors begin with "FILE:LINE: full.path: ...", where
// FILE is `source`. An unknown field is reported with the most similar one and all valid ones, a
// value of the wrong type with what is wanted. After an error `*message` is partly merged.
// `origins`, unless null, records where each field was given.
absl::Status MergeYaml(const std::string& text, const std::string& source,
                       google::protobuf::Message* message, Origins* origins = nullptr);

// Merges "path.to.field=VALUE", where VALUE is YAML: `pipeline.cuts=[layer1, layer2]`. Keys of maps
// are steps of the path and may contain dots: `compression.boundaries.layer1.0.gradients.bits=4`.
// An empty VALUE, or null, clears a field of text, number or boolean. Errors as above, with "--set
// path.to.field=VALUE" in place of the file.
absl::Status Override(const std::string& assignment, google::protobuf::Message* message,
                      Origins* origins = nullptr);

// Returns the path of the field that an override clears; empty if it sets a field or is malformed.
std::string ClearedBy(const std::string& assignment, const google::protobuf::Message& message);

// Clears the field at `path`, spelled as in Override; sections around it stay. Does nothing if
// there is no such field.
void ClearField(const std::string& path, google::protobuf::Message* message);

// Returns every field that is set, in the schema's order, as YAML from which MergeYaml makes an
// equal message.
std::string WriteYaml(const google::protobuf::Message& message);

}  // namespace thinwire
