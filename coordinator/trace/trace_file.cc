#include "coordinator/trace/trace_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/trace/chrome.h"

namespace thinwire {

std::string TracePath(const std::string& run) { return run + "/trace.json"; }

absl::StatusOr<RunTrace> ReadTrace(const std::string& run) {
  const std::string path = TracePath(run);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat(text.status().message(), "; thinwire run --trace steps=N..M writes it"));
  }
  RETURN_IF_ERROR(text.status());
  return Annotated(ParseChrome(*text), absl::StrCat(path, ": is no trace of Thinwire"));
}

}  // namespace thinwire
