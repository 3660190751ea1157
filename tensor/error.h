// A backend's report of a failure across the plugin ABI: plain data, no absl, no exceptions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace thinwire {

struct Error {
  int32_t code = 0;  // an absl::StatusCode; 0 is success
  char message[508] = {};

  bool ok() const { return code == 0; }
};
static_assert(sizeof(Error) == 512, "crosses the plugin ABI");

// Makes an error with a printf-style message; longer messages are cut at the array's end.
Error MakeError(absl::StatusCode code, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

absl::Status ToStatus(const Error& error);

}  // namespace thinwire

// RETURN_IF_ERROR (base/status.h) for functions that return Error.
#define RETURN_ERROR(expression)                            \
  do {                                                      \
    const ::thinwire::Error thinwire_error_ = (expression); \
    if (!thinwire_error_.ok()) return thinwire_error_;      \
  } while (false)
