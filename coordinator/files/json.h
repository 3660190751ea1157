// Conversion of protobuf messages to the JSON of summary.json and metrics.jsonl.
#pragma once

#include <string>

#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace thinwire {

// Converts every field, under its name in the .proto file and in that order. Unset fields with
// presence (messages, `optional` scalars) are null; all others have their value. Integers are
// numbers, 64-bit ones too. Doubles print as the shortest text that reads back the same; NaN and
// infinity are null. Maps with string keys are objects. Not supported: bytes fields, other maps,
// and lists of scalars other than strings and unsigned integers.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

// Does the same, but NaN and infinities are the strings "NaN", "Infinity" and "-Infinity", which
// protobuf can read.
nlohmann::ordered_json ToExactJson(const google::protobuf::Message& message);

// Prints on one line, or indented by `indent` spaces. Bytes that are not UTF-8, as file names may
// have, become U+FFFD.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace thinwire
