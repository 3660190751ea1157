#include "coordinator/files/folders.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/file.h"

namespace thinwire {

namespace fs = std::filesystem;

absl::StatusOr<bool> MakeFolder(const std::string& path) {
  std::error_code error;
  const bool is_new = fs::create_directories(path, error);
  if (error) return FileError(path, "cannot make the folder", error.value());
  return is_new;
}

absl::StatusOr<std::vector<std::string>> NamesIn(
    const std::string& path, const std::function<bool(const fs::directory_entry&)>& wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator i(path, error), end; !error && i != end; i.increment(error)) {
    if (wanted(*i)) names.push_back(i->path().filename().string());
  }
  if (error) return FileError(path, "cannot list the folder", error.value());
  return names;
}

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

absl::Status WriteFolder(const std::string& dir,
                         const std::function<absl::Status(const std::string& path)>& write) {
  const std::string temporary = dir + ".tmp";
  std::error_code error;
  fs::remove_all(temporary, error);
  if (error) return FileError(temporary, "cannot make the folder", error.value());
  absl::Status status = MakeFolder(temporary).status();
  if (status.ok()) status = write(temporary);
  if (status.ok()) status = ReplaceFolder(dir, temporary);
  fs::remove_all(temporary, error);
  return status;
}

}  // namespace thinwire
