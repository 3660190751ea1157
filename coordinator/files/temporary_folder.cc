#include "coordinator/files/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace thinwire {
namespace {

constexpr char kFolderLock[] = "/.thinwire-lock";

// Makes a lock file that is already locked when it appears, so that no other process finds it free.
absl::StatusOr<int> MakeLock(const std::string& folder) {
  const std::string path = folder + kFolderLock, unlocked = path + ".new";
  const int lock = open(unlocked.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock < 0) return FileError(unlocked, "cannot open", errno);
  if (flock(lock, LOCK_EX | LOCK_NB) == 0 && std::rename(unlocked.c_str(), path.c_str()) == 0) {
    return lock;
  }
  const int error = errno;
  close(lock);
  return FileError(path, "cannot lock", error);
}

bool IsOwnFolder(const std::string& path) {
  struct stat about;
  return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

// Removes the folders whose process has ended.
void Sweep(const std::string& place) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(place, ignored)) {
    const std::string path = entry.path().string();
    if (!IsOwnFolder(path)) continue;
    const int lock =
        open((path + kFolderLock).c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock < 0) continue;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(path, ignored);
    close(lock);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make(const std::string& name,
                                                                       std::string place) {
  if (place.empty()) {
    const char* const given = getenv("TMPDIR");
    place = given != nullptr && *given != 0 ? given : "/tmp";
  }
  Sweep(place);
  std::string path = absl::StrCat(place, "/", name, "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return FileError(path, "cannot make the folder", errno);
  const absl::StatusOr<int> lock = MakeLock(path);
  if (lock.ok()) return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path, *lock));
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  return lock.status();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  close(lock_);
}

}  // namespace thinwire
