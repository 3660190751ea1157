// Conversion of an enum's values to names and back, by one table per enum. Errors and lists use the
// table's order. An entry has a `value` and a `name`, and may have more.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace thinwire {

// Entry of such a table.
template <typename Enum>
struct Named {
  Enum value;
  const char* name;
};

// Returns the name of `value`; "unknown" if the table lacks it.
template <typename Entry, size_t kNumEntries, typename Enum>
const char* NameIn(const Entry (&entries)[kNumEntries], Enum value) {
  for (const Entry& entry : entries) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

// Returns all values of the table.
template <typename Entry, size_t kNumEntries>
auto ValuesIn(const Entry (&entries)[kNumEntries]) {
  std::vector<decltype(Entry::value)> values;
  for (const Entry& entry : entries) values.push_back(entry.value);
  return values;
}

// Returns the names of `values` as errors and lists show them.
template <typename Enum>
std::vector<std::string> NamesOf(const std::vector<Enum>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.push_back(Name(value));
  return names;
}

// Returns InvalidArgument, beginning with `what`, with the most similar and all known names.
inline absl::Status UnknownName(const char* what, const std::string& name,
                                const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": unknown \"", name, "\", nearest is \"",
                                                 NearestName(name, known), "\" (want one of ",
                                                 absl::StrJoin(known, ", "), ")"));
}

// Stores the value of that name in *to; UnknownName if there is none.
template <typename Entry, size_t kNumEntries, typename Enum>
absl::Status FindName(const char* what, const std::string& name,
                      const Entry (&entries)[kNumEntries], Enum* to) {
  std::vector<std::string> known;
  for (const Entry& entry : entries) {
    if (name == entry.name) {
      *to = entry.value;
      return absl::OkStatus();
    }
    known.push_back(entry.name);
  }
  return UnknownName(what, name, known);
}

}  // namespace thinwire
