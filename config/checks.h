// The sentences with which values of an experiment are refused.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace thinwire {

// "PATH: unknown WHAT "NAME"; did you mean NEAREST? Known: ..."
absl::Status UnknownName(const std::string& path, const std::string& what, const std::string& name,
                         const std::vector<std::string>& known);

// UnknownName unless `name` is one of `known`.
absl::Status CheckName(const std::string& path, const std::string& what, const std::string& name,
                       const std::vector<std::string>& known);

// "PATH: VALUE, want WANTED" unless `good`.
absl::Status CheckValue(bool good, const std::string& path, double value,
                        const std::string& wanted);

}  // namespace thinwire
