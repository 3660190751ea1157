// Conversion between YAML and any protobuf message, by reflection. Fields may be string, bool,
// uint32, uint64, double, a message, a list of strings, uint64 or messages, or a map from strings
// to messages or numbers.
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

// Does the same for a tree. Line 0 stands for no line, as in an override, which must say something.
absl::Status MergeTree(const YamlNode& root, const std::string& source,
                       google::protobuf::Message* message, Origins* origins = nullptr);

// Returns every field that is set, in the schema's order, as YAML from which MergeYaml makes an
// equal message.
std::string WriteYaml(const google::protobuf::Message& message);

}  // namespace thinwire
