// Errors that say where they happened.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace thinwire {

// Returns an error with "`where`: " before its message and the code that it has; OK as it is.
inline absl::Status Annotated(const absl::Status& status, absl::string_view where) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

// Does the same for an error in a value's place.
template <typename T>
absl::StatusOr<T> Annotated(absl::StatusOr<T> value, absl::string_view where) {
  if (value.ok()) return value;
  return Annotated(value.status(), where);
}

}  // namespace thinwire
