// Files of what is set aside on disk while something is made that memory may not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/owned_descriptor.h"

namespace thinwire {

// An open file without a name, to which bytes are appended and which may be read anywhere. It
// vanishes when it is closed, however the process ends. Not thread-safe.
class TemporaryFile {
 public:
  // Makes one in a folder. Errors of FileError.
  static absl::StatusOr<TemporaryFile> In(const std::string& folder);

  // Appends bytes, in portions of 1 MiB. An error names the path that the file had.
  absl::Status Append(const void* from, size_t bytes);
  // Returns the number of bytes that were appended.
  int64_t size() const { return written_ + static_cast<int64_t>(waiting_.size()); }
  // Writes what waits; then bytes are read that were appended before.
  absl::Status Flush();
  absl::Status Read(int64_t offset, void* to, size_t bytes) const;

 private:
  TemporaryFile(std::string path, OwnedDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  OwnedDescriptor file_;
  int64_t written_ = 0;
  std::string waiting_;
};

// Returns the folder in which a file is.
std::string FolderOf(const std::string& path);

}  // namespace thinwire
