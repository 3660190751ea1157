#include "stage_server/swap/swap_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Part of a disk's free bytes, and the most of them, that are left to others.
constexpr uint64_t kMarginPart = 20, kMostMargin = uint64_t{1} << 30;

std::string NameOf(const std::string& folder) { return absl::StrCat("swap file in ", folder); }

absl::StatusOr<uint64_t> FreeBytes(const std::string& folder) {
  struct statvfs disk;
  if (statvfs(folder.c_str(), &disk) != 0) return FileError(NameOf(folder), "cannot open", errno);
  return static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
}

bool SetDirect(int file, bool is_direct) {
  const int flags = fcntl(file, F_GETFL);
  return flags >= 0 && fcntl(file, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

bool IsFull(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

SwapFile::SwapFile(const SwapFileOptions& options, OwnedDescriptor file, uint64_t most_bytes)
    : options_(options),
      name_(NameOf(options.folder)),
      file_(std::move(file)),
      most_bytes_(most_bytes),
      is_direct_(SetDirect(file_.get(), true)) {}

absl::StatusOr<std::unique_ptr<SwapFile>> SwapFile::Open(const SwapFileOptions& options) {
  ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(options.folder));
  const uint64_t most =
      options.most_bytes.value_or(free - std::min(free / kMarginPart, kMostMargin));
  std::string path = absl::StrCat(options.folder, "/.thinwire-swap-XXXXXX");
  OwnedDescriptor opened(mkostemp(path.data(), O_CLOEXEC));
  if (opened.get() < 0) return FileError(NameOf(options.folder), "cannot open", errno);
  if (unlink(path.c_str()) != 0) return FileError(NameOf(options.folder), "cannot unlink", errno);
  std::unique_ptr<SwapFile> file(new SwapFile(options, std::move(opened), most));
  if (!file->is_direct_ && options.on_note) {
    options.on_note(absl::StrCat(file->name_, " goes through the page cache: its file system has ",
                                 "no direct reads and writes"));
  }
  return file;
}

bool SwapFile::GivesUpDirect(int error, bool was_direct) {
  // Two threads may be refused at once; one of them tells it.
  if (error != EINVAL || !was_direct || !SetDirect(file_.get(), false)) return false;
  if (is_direct_.exchange(false) && options_.on_note) {
    options_.on_note(absl::StrCat(name_, " goes through the page cache: its file system has ",
                                  "refused a direct read or write"));
  }
  return true;
}

absl::Status SwapFile::NoRoom(uint64_t end, int error) const {
  const absl::StatusOr<uint64_t> free = FreeBytes(options_.folder);
  return absl::ResourceExhaustedError(
      absl::StrCat(name_, ": ", end, " bytes wanted, ",
                   free.ok() ? absl::StrCat(*free, " of the disk are free: ") : std::string(),
                   std::strerror(error), "; want another --swap_dir, or fewer bytes to swap"));
}

absl::Status SwapFile::Write(uint64_t begin, const void* from, size_t bytes) {
  if (begin + bytes > most_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        name_, ": ", begin + bytes, " bytes wanted, at most ", most_bytes_, " are allowed (",
        options_.most_bytes ? "--swap_bytes" : "what was free of the disk, less a margin", ")"));
  }
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const bool is_direct = is_direct_;
    const ssize_t done = pwrite(file_.get(), at, bytes, static_cast<off_t>(begin));
    if (done < 0 && (errno == EINTR || GivesUpDirect(errno, is_direct))) continue;
    if (done < 0 && IsFull(errno)) return NoRoom(begin + bytes, errno);
    if (done <= 0) return FileError(name_, "cannot write", done < 0 ? errno : EIO);
    at += done;
    begin += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  return absl::OkStatus();
}

absl::Status SwapFile::Read(uint64_t begin, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const bool is_direct = is_direct_;
    const ssize_t done = pread(file_.get(), at, bytes, static_cast<off_t>(begin));
    if (done < 0 && (errno == EINTR || GivesUpDirect(errno, is_direct))) continue;
    if (done < 0) return FileError(name_, "cannot read", errno);
    if (done == 0) {
      return absl::DataLossError(
          absl::StrCat(name_, " ends at byte ", begin, ", want ", bytes, " more"));
    }
    at += done;
    begin += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  return absl::OkStatus();
}

}  // namespace thinwire
