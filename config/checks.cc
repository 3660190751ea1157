#include "config/checks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace thinwire {

absl::Status UnknownName(const std::string& path, const std::string& what, const std::string& name,
                         const std::vector<std::string>& known) {
  const std::string guess =
      known.size() > 1 ? absl::StrCat("did you mean ", NearestName(name, known), "? Known: ")
                       : "known: ";
  return absl::InvalidArgumentError(absl::StrCat(path, ": unknown ", what, " \"", name, "\"; ",
                                                 guess, absl::StrJoin(known, ", ")));
}

absl::Status CheckName(const std::string& path, const std::string& what, const std::string& name,
                       const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  return UnknownName(path, what, name, known);
}

absl::Status CheckValue(bool good, const std::string& path, double value,
                        const std::string& wanted) {
  if (good) return absl::OkStatus();
  // Prints whole numbers in full, not as 1e+06.
  const bool is_whole = std::abs(value) < 1e15 && value == std::trunc(value);
  const std::string shown =
      is_whole ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrCat(value);
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", shown, ", want ", wanted));
}

}  // namespace thinwire
