// Names of an enum's values and back, from one table per enum. Private to this folder.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"

namespace thinwire {

template <typename Enum>
struct Named {
  Enum value;
  const char* name;
};

template <typename Enum, size_t kNumNames>
const char* NameIn(const Named<Enum> (&names)[kNumNames], Enum value) {
  for (const Named<Enum>& named : names) {
    if (named.value == value) return named.name;
  }
  return "unknown";
}

// InvalidArgument beginning with `what` gives the nearest and all known names.
template <typename Enum, size_t kNumNames>
absl::Status FindName(const char* what, const std::string& name,
                      const Named<Enum> (&names)[kNumNames], Enum* to) {
  std::vector<std::string> known;
  for (const Named<Enum>& named : names) {
    if (name == named.name) {
      *to = named.value;
      return absl::OkStatus();
    }
    known.push_back(named.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(what, ": unknown \"", name, "\", nearest is \"",
                                                 NearestName(name, known), "\" (want one of ",
                                                 absl::StrJoin(known, ", "), ")"));
}

}  // namespace thinwire
