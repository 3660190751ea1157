// Error messages for refused values of an experiment.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace thinwire {

// Returns "PATH: unknown WHAT "NAME"; did you mean NEAREST? Known: ..." as InvalidArgument.
absl::Status UnknownName(const std::string& path, const std::string& what, const std::string& name,
                         const std::vector<std::string>& known);

// Returns UnknownName unless `name` is one of `known`.
absl::Status CheckName(const std::string& path, const std::string& what, const std::string& name,
                       const std::vector<std::string>& known);

// Returns "PATH: VALUE, want WANTED" as InvalidArgument unless `good`.
absl::Status CheckValue(bool good, const std::string& path, double value,
                        const std::string& wanted);

}  // namespace thinwire
