#include "coordinator/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace thinwire {

absl::Status FileError(const std::string& path, std::string_view what, int error) {
  return absl::ErrnoToStatus(error,
                             absl::StrCat(path, ": ", absl::string_view(what.data(), what.size())));
}

absl::Status WriteAll(int file, const std::string& path, std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = write(file, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "cannot write", errno);
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status ReplaceFile(const std::string& path, std::string_view data) {
  return ReplaceFile(path, [data](const FileSink& sink) { return sink(data); });
}

absl::Status ReplaceFile(const std::string& path,
                         const std::function<absl::Status(const FileSink&)>& write) {
  const std::string temporary = path + ".tmp";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return FileError(temporary, "cannot open", errno);
  absl::Status status =
      write([&](std::string_view data) { return WriteAll(file, temporary, data); });
  if (status.ok() && fsync(file) != 0) status = FileError(temporary, "cannot sync", errno);
  if (close(file) != 0 && status.ok()) status = FileError(temporary, "cannot close", errno);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = FileError(path, "cannot rename", errno);
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace thinwire
