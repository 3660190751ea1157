// Protobuf messages as the JSON of summary.json and metrics.jsonl.
#pragma once

#include <string>

#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace thinwire {

// Every field under its name in the .proto file and in its order; unset fields with presence
// (messages, `optional` scalars) are null, all others stand with their value. Integers are
// numbers, also 64-bit ones; doubles print as the shortest text that reads back the same, NaN and
// infinity as null. Maps with string keys are objects; bytes fields, other maps and lists of other
// scalars than texts and unsigned integers are not used.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

// The same, but NaN and infinities are the strings "NaN", "Infinity" and "-Infinity", as protobuf
// reads them.
nlohmann::ordered_json ToExactJson(const google::protobuf::Message& message);

// On one line, or indented by `indent` spaces. Bytes that are not UTF-8, as file names may have,
// become U+FFFD.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace thinwire
