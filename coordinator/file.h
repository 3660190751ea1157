// Writing files so that a full disk is noticed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

// "PATH: WHAT: No space left on device"; the code follows `error`, an errno value.
absl::Status FileError(const std::string& path, std::string_view what, int error);

// Writes all of `data` to the open descriptor. `path` is for messages.
absl::Status WriteAll(int file, const std::string& path, std::string_view data);

// Writes PATH.tmp, syncs and renames it, so that PATH holds the old content or all of the new.
absl::Status ReplaceFile(const std::string& path, std::string_view data);

// The same for what `write` hands to its sink.
using FileSink = std::function<absl::Status(std::string_view)>;
absl::Status ReplaceFile(const std::string& path,
                         const std::function<absl::Status(const FileSink&)>& write);

}  // namespace thinwire
