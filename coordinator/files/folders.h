// Folders: made, listed, and replaced as a whole, like a file by a rename. Errors name them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// Makes the folder and its parents. Returns whether it was not there before.
absl::StatusOr<bool> MakeFolder(const std::string& path);

// Returns the names of what is in the folder and `wanted`, in no particular order.
absl::StatusOr<std::vector<std::string>> NamesIn(
    const std::string& path,
    const std::function<bool(const std::filesystem::directory_entry&)>& wanted);

// Moves the folder `with` to `dir`. An older `dir` becomes `with` or is removed. Whenever the
// process ends, `dir` is either the older folder or the newer one. On file systems that cannot
// exchange folders (NFS), `dir` may be missing then and the older one left as DIR.old.
absl::Status ReplaceFolder(const std::string& dir, const std::string& with);

// Lets `write` fill an empty folder, whose path it is given, and then replaces `dir` with it. After
// an error `dir` is what it was.
absl::Status WriteFolder(const std::string& dir,
                         const std::function<absl::Status(const std::string& path)>& write);

}  // namespace thinwire
