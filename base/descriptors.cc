#include <sys/resource.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/resources.h"

namespace thinwire {

absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t least) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return absl::ErrnoToStatus(errno, "cannot read the limit on open files");
  }
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = soft;  // the limit stays what it was
  if (limit.rlim_cur < least) {
    return absl::FailedPreconditionError(
        absl::StrCat("at most ", limit.rlim_cur, " files and sockets may be open here, want at ",
                     "least ", least, ": raise the limit, `ulimit -n ", 16 * least, "`"));
  }
  return limit.rlim_cur;
}

}  // namespace thinwire
