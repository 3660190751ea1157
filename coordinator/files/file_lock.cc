#include "coordinator/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Take(const std::string& path) {
  // Network file systems lock only files that are open for writing, hence O_RDWR.
  OwnedDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0) return FileError(path, "cannot open", errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
    return std::unique_ptr<FileLock>(new FileLock(std::move(file)));
  }
  if (errno == EWOULDBLOCK) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": another process holds it"));
  }
  return FileError(path, "cannot lock", errno);
}

}  // namespace thinwire
