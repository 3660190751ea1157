// The valid name most similar to a mistyped one ("did you mean").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

// Returns the least number of insertions, deletions and replacements that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the name in `names` with the smallest edit distance to `name`, the earlier one of equals;
// empty if there are no names.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

}  // namespace thinwire
