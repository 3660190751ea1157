#include "coordinator/session/exit_code.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace thinwire {

ExitCode Complain(const absl::Status& error, ExitCode code) {
  std::fprintf(stderr, "thinwire: %s\n", Printable(std::string(error.message())).c_str());
  return code;
}

ExitCode ExitOfPath(const absl::Status& error) {
  const bool is_usage = absl::IsAlreadyExists(error) || absl::IsPermissionDenied(error) ||
                        absl::IsFailedPrecondition(error) || absl::IsInvalidArgument(error) ||
                        absl::IsNotFound(error);
  return is_usage ? kExitUsage : kExitFailed;
}

ExitCode PrintResult(std::string_view text) {
  const absl::Status printed = WriteAll(STDOUT_FILENO, "stdout", text);
  return printed.ok() ? kExitDone : Complain(printed, kExitFailed);
}

}  // namespace thinwire
