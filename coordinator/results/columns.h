// Columns of a table for a message of a run's record.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"

namespace thinwire {

// One column.
struct Column {
  std::string name;               // "test_compressed_loss"
  std::string type;               // INTEGER, REAL or TEXT
  std::vector<std::string> path;  // {"test", "compressed", "loss"}
};

// Returns a column for every scalar field, in order. Fields of a nested message have its name
// before theirs. Lists and maps are left out.
std::vector<Column> ColumnsOf(const google::protobuf::Descriptor* message);

// Returns the value of a column in the message's JSON; null where any part of its path is null or
// absent.
nlohmann::ordered_json ValueOf(const Column& column, const nlohmann::ordered_json& json);

}  // namespace thinwire
