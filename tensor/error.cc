#include "tensor/error.h"

#include <cstdarg>
#include <cstdio>

namespace thinwire {

Error MakeError(absl::StatusCode code, const char* format, ...) {
  Error error;
  error.code = static_cast<int32_t>(code);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error.message, sizeof(error.message), format, arguments);
  va_end(arguments);
  return error;
}

absl::Status ToStatus(const Error& error) {
  if (error.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(error.code), error.message);
}

}  // namespace thinwire
