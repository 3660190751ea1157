// A message of a run's record as columns of a table.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"

namespace thinwire {

struct Column {
  std::string name;               // "test_compressed_loss"
  std::string type;               // INTEGER, REAL or TEXT
  std::vector<std::string> path;  // {"test", "compressed", "loss"}
};

// Of every field that has one value, in order; a message's fields stand under its name and theirs.
// Lists and maps are left out.
std::vector<Column> ColumnsOf(const google::protobuf::Descriptor* message);

// The value of a column in the message's JSON; null where any of its path is null or absent.
nlohmann::ordered_json ValueOf(const Column& column, const nlohmann::ordered_json& json);

}  // namespace thinwire
