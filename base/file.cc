#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

absl::Status FileError(const std::string& path, std::string_view what, int error) {
  return absl::ErrnoToStatus(error,
                             absl::StrCat(path, ": ", absl::string_view(what.data(), what.size())));
}

absl::Status CheckRegular(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode)) return absl::OkStatus();
  if (S_ISDIR(about.st_mode)) return FileError(path, "cannot read", EISDIR);
  const char* const kind = S_ISFIFO(about.st_mode)   ? "FIFO"
                           : S_ISSOCK(about.st_mode) ? "socket"
                                                     : "device";
  return absl::InvalidArgumentError(absl::StrCat(path, ": is a ", kind, ", want a regular file"));
}

absl::StatusOr<OwnedDescriptor> OpenRegular(const std::string& path) {
  RETURN_IF_ERROR(CheckRegular(path));
  // O_NONBLOCK: open must not block if a FIFO has taken the place of the file since the check.
  OwnedDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return FileError(path, "cannot open", errno);
  return file;
}

absl::Status ReadAt(int file, const std::string& path, int64_t offset, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(file, at, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, "cannot read", errno);
    if (got == 0) return absl::DataLossError(absl::StrCat(path, " ends at byte ", offset));
    at += got;
    offset += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::string data;
  struct stat about;
  if (stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode)) {
    data.reserve(static_cast<size_t>(about.st_size));
  }
  RETURN_IF_ERROR(ReadFile(path, [&](std::string_view piece) {
    data += piece;
    return absl::OkStatus();
  }));
  return data;
}

absl::Status ReadFile(const std::string& path, const FileSink& sink) {
  ASSIGN_OR_RETURN(const OwnedDescriptor file, OpenRegular(path));
  std::vector<char> piece(size_t{1} << 20);
  for (;;) {
    const ssize_t bytes = read(file.get(), piece.data(), piece.size());
    if (bytes == 0) return absl::OkStatus();
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return FileError(path, "cannot read", errno);
    RETURN_IF_ERROR(sink({piece.data(), static_cast<size_t>(bytes)}));
  }
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

absl::Status CheckReplaceable(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is ", S_ISDIR(about.st_mode) ? "a folder" : "no regular file",
                   ", want the path of a file"));
}

absl::Status ReplaceFile(const std::string& path, std::string_view data) {
  return ReplaceFile(path, [data](const FileSink& sink) { return sink(data); });
}

absl::Status ReplaceFile(const std::string& path,
                         const std::function<absl::Status(const FileSink&)>& write) {
  RETURN_IF_ERROR(CheckReplaceable(path));
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

absl::Status SyncFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return FileError(path, "cannot open", errno);
  absl::Status status;
  // EINVAL means that the file system does not sync folders.
  if (fsync(folder) != 0 && errno != EINVAL) status = FileError(path, "cannot sync", errno);
  close(folder);
  return status;
}

}  // namespace thinwire
