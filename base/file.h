// Reading and writing whole files, with errors that name them, also for a full disk and for a
// folder in place of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/owned_descriptor.h"

namespace thinwire {

// Returns "PATH: WHAT: No space left on device"; the code depends on `error`, an errno value.
absl::Status FileError(const std::string& path, std::string_view what, int error);

// Returns an error that says what `path` is, unless it is a regular file or does not exist. Reading
// a FIFO or a device could block or never end.
absl::Status CheckRegular(const std::string& path);

// Opens a regular file to read it. Errors of CheckRegular too.
absl::StatusOr<OwnedDescriptor> OpenRegular(const std::string& path);

// Reads `bytes` at `offset` of the open descriptor `file`. DataLoss if the file ends before. `path`
// is for messages.
absl::Status ReadAt(int file, const std::string& path, int64_t offset, void* to, size_t bytes);

// Reads a whole regular file. Errors of CheckRegular too.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Does the same in pieces of at most 1 MiB, in order; stops at the first error of `sink`.
using FileSink = std::function<absl::Status(std::string_view)>;
absl::Status ReadFile(const std::string& path, const FileSink& sink);

// Writes all of `data` to the open descriptor `file`. `path` is for messages.
absl::Status WriteAll(int file, const std::string& path, std::string_view data);

// Returns InvalidArgument unless `path` is a regular file or does not exist: a rename onto a
// device, a pipe or a folder would replace it.
absl::Status CheckReplaceable(const std::string& path);

// Writes PATH.tmp, syncs and renames it, so that PATH has the old content or all of the new. Errors
// of CheckReplaceable too.
absl::Status ReplaceFile(const std::string& path, std::string_view data);

// Does the same for what `write` hands to its sink.
absl::Status ReplaceFile(const std::string& path,
                         const std::function<absl::Status(const FileSink&)>& write);

// Syncs a folder: files that were made, renamed or removed in it stay so after a crash.
absl::Status SyncFolder(const std::string& path);

}  // namespace thinwire
