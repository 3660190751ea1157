// Reading of the files that published models come with, and printing of what they have.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace thinwire {

// Returns whether something has this path; who then reads it reports what it cannot read.
bool IsThere(const std::string& path);

// Reads a file of at most 256 MiB; published ones have up to 35 MB. InvalidArgument names a larger
// one.
absl::StatusOr<std::string> ReadPublished(const std::string& path);

// Reads a map. DataLoss names a file that only stands in for another, InvalidArgument one that is
// none.
absl::StatusOr<nlohmann::json> ReadJsonMap(const std::string& path);

// Returns a value as one line for a message.
std::string Printed(const nlohmann::json& value);

}  // namespace thinwire
