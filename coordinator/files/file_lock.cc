#include "coordinator/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Take(const std::string& path) {
  // Network file systems lock only files that are open for writing, hence O_RDWR.
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot open", errno);
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return std::unique_ptr<FileLock>(new FileLock(file));
  const int error = errno;
  close(file);
  if (error == EWOULDBLOCK) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": another process holds it"));
  }
  return FileError(path, "cannot lock", error);
}

FileLock::~FileLock() { close(file_); }

}  // namespace thinwire
