// Files as wholes, with errors that name them: a full disk is noticed, and a folder that is no
// file.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// "PATH: WHAT: No space left on device"; the code follows `error`, an errno value.
absl::Status FileError(const std::string& path, std::string_view what, int error);

// Unless `path` leads to a regular file, or to nothing, an error that says what it is: who reads a
// FIFO or a device may wait for ever, or never come to an end.
absl::Status CheckRegular(const std::string& path);

// All of a regular file. Errors of CheckRegular too.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// The same in pieces of at most 1 MiB, in order; stops at the first error of `sink`.
using FileSink = std::function<absl::Status(std::string_view)>;
absl::Status ReadFile(const std::string& path, const FileSink& sink);

// Writes all of `data` to the open descriptor. `path` is for messages.
absl::Status WriteAll(int file, const std::string& path, std::string_view data);

// InvalidArgument unless `path` is a regular file, or nothing: what is renamed onto a device, a
// pipe or a folder would take its place.
absl::Status CheckReplaceable(const std::string& path);

// Writes PATH.tmp, syncs and renames it, so that PATH holds the old content or all of the new.
// Errors of CheckReplaceable too.
absl::Status ReplaceFile(const std::string& path, std::string_view data);

// The same for what `write` hands to its sink.
absl::Status ReplaceFile(const std::string& path,
                         const std::function<absl::Status(const FileSink&)>& write);

// The folder's entries are on the disk: what was made, renamed or removed in it stays so.
absl::Status SyncFolder(const std::string& path);

}  // namespace thinwire
