// "did you mean": the valid name that a mistyped one is closest to.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

// How many insertions, deletions and replacements make `b` of `a`.
size_t EditDistance(std::string_view a, std::string_view b);

// The name of `names` with the smallest edit distance to `name`, ties to the earlier; empty if
// there are no names.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

}  // namespace thinwire
