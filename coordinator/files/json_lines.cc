#include "coordinator/files/json_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<JsonLines>> JsonLines::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return FileError(path, "cannot open", errno);
  return std::unique_ptr<JsonLines>(new JsonLines(path, file));
}

JsonLines::~JsonLines() { close(file_); }

absl::Status JsonLines::Append(const std::string& lines) {
  struct stat ours, there;
  const bool is_there = fstat(file_, &ours) == 0 && stat(path_.c_str(), &there) == 0 &&
                        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  // Writing to a file that has been removed succeeds, but the data is lost.
  if (!is_there) {
    return absl::DataLossError(
        absl::StrCat(path_, ": was removed or replaced while the run wrote to it"));
  }
  return WriteAll(file_, path_, lines);
}

absl::StatusOr<uint64_t> JsonLines::Bytes() const {
  struct stat ours;
  if (fstat(file_, &ours) == 0) return static_cast<uint64_t>(ours.st_size);
  return FileError(path_, "cannot look at", errno);
}

absl::Status JsonLines::Cut(uint64_t bytes) {
  ASSIGN_OR_RETURN(uint64_t size, Bytes());
  size = std::min(size, bytes);
  // A crash of the machine may have cut off the end of a line.
  for (char last = 0; size > 0; --size) {
    if (pread(file_, &last, 1, static_cast<off_t>(size - 1)) != 1) {
      return FileError(path_, "cannot read", errno);
    }
    if (last == '\n') break;
  }
  if (ftruncate(file_, static_cast<off_t>(size)) == 0) return absl::OkStatus();
  return FileError(path_, "cannot cut off", errno);
}

}  // namespace thinwire
