// Replacement of a folder as a whole, like that of a file by a rename.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace thinwire {

// Moves the folder `with` to `dir`. An older `dir` becomes `with` or is removed. Whenever the
// process ends, `dir` is either the older folder or the newer one. On file systems that cannot
// exchange folders (NFS), `dir` may be missing then and the older one left as DIR.old.
absl::Status ReplaceFolder(const std::string& dir, const std::string& with);

}  // namespace thinwire
