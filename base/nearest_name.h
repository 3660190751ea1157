// "did you mean": the valid name that a mistyped one is closest to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

// The name of `names` with the smallest edit distance (insert, delete, replace: one each) to
// `name`, ties to the earlier; empty if there are no names.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

}  // namespace thinwire
