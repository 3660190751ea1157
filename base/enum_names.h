// Conversion of an enum's values to names and back. An enum with names has a table, which a
// function beside it returns:
//   NameTable<Color> TableOf(Color);
// Name, FromName and AllOf find that function. Errors and lists use the table's order.
#pragma once

#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/text.h"

namespace thinwire {

// Entry of a table. Entries of another type serve the functions ending in In too, if they have a
// `value` and a `name`.
template <typename Enum>
struct Named {
  Enum value;
  const char* name;
};

// Names of an enum's values.
template <typename Enum>
struct NameTable {
  const char* what;  // beginning of errors
  absl::Span<const Named<Enum>> entries;
};

// Returns all values of the entries.
template <typename Entries>
auto AllIn(const Entries& entries) {
  std::vector<std::decay_t<decltype(std::begin(entries)->value)>> values;
  for (const auto& entry : entries) values.push_back(entry.value);
  return values;
}

// Returns InvalidArgument, beginning with `what`, with the most similar and all known names.
inline absl::Status UnknownName(const char* what, const std::string& name,
                                const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": unknown \"", name, "\", nearest is \"",
                                                 NearestName(name, known), "\" (want one of ",
                                                 absl::StrJoin(known, ", "), ")"));
}

// Stores the value of that name in *to; UnknownName if there is none.
template <typename Entries, typename Enum>
absl::Status FindNameIn(const char* what, const std::string& name, const Entries& entries,
                        Enum* to) {
  std::vector<std::string> known;
  for (const auto& entry : entries) {
    if (name == entry.name) {
      *to = entry.value;
      return absl::OkStatus();
    }
    known.push_back(entry.name);
  }
  return UnknownName(what, name, known);
}

// Returns the name of `value`; "unknown" if its table lacks it.
template <typename Enum, typename = decltype(TableOf(Enum()))>
const char* Name(Enum value) {
  for (const Named<Enum>& entry : TableOf(value).entries) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

// Stores the value of that name in *to; UnknownName if there is none.
template <typename Enum, typename = decltype(TableOf(Enum()))>
absl::Status FromName(const std::string& name, Enum* to) {
  const NameTable<Enum> table = TableOf(Enum());
  return FindNameIn(table.what, name, table.entries, to);
}

// Returns all values of an enum's table.
template <typename Enum>
std::vector<Enum> AllOf() {
  return AllIn(TableOf(Enum()).entries);
}

// Returns the names of `values` as errors and lists show them.
template <typename Enum>
std::vector<std::string> NamesOf(const std::vector<Enum>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.push_back(Name(value));
  return names;
}

}  // namespace thinwire
