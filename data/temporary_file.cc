#include "data/temporary_file.h"

#include <fcntl.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr size_t kPortion = size_t{1} << 20;

}  // namespace

absl::StatusOr<TemporaryFile> TemporaryFile::In(const std::string& folder) {
  std::string path = absl::StrCat(folder, "/.thinwire.XXXXXX");
  OwnedDescriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) return FileError(path, "cannot set bytes aside", errno);
  std::remove(path.c_str());
  return TemporaryFile(std::move(path), std::move(file));
}

absl::Status TemporaryFile::Append(const void* from, size_t bytes) {
  waiting_.append(static_cast<const char*>(from), bytes);
  return waiting_.size() < kPortion ? absl::OkStatus() : Flush();
}

absl::Status TemporaryFile::Flush() {
  RETURN_IF_ERROR(WriteAll(file_.get(), path_, waiting_));
  written_ += static_cast<int64_t>(waiting_.size());
  waiting_.clear();  // the memory stays until the next Append
  return absl::OkStatus();
}

absl::Status TemporaryFile::Read(int64_t offset, void* to, size_t bytes) const {
  return ReadAt(file_.get(), path_, offset, to, bytes);
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace thinwire
