#include "coordinator/files/replace_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace thinwire {

namespace fs = std::filesystem;

absl::Status ReplaceFolder(const std::string& dir, const std::string& with) {
  if (renameat2(AT_FDCWD, with.c_str(), AT_FDCWD, dir.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  const std::string old = dir + ".old";
  std::error_code error;
  if (errno == EINVAL || errno == ENOSYS) {  // the file system cannot exchange
    fs::remove_all(old, error);
    fs::rename(dir, old, error);  // `dir` need not exist
  } else if (errno != ENOENT) {
    return FileError(dir, "cannot replace the folder", errno);
  }
  fs::rename(with, dir, error);
  if (error) return FileError(dir, "cannot replace the folder", error.value());
  fs::remove_all(old, error);
  return absl::OkStatus();
}

}  // namespace thinwire
