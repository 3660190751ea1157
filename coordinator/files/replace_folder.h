// A folder that takes another's place as a whole, as a file does that is renamed.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace thinwire {

// `dir`, which may be there or not, becomes the folder `with`; what it was stands as `with` then,
// or nowhere. Whenever the process ends, `dir` is the older folder or the newer one; but on file
// systems that cannot exchange folders (NFS) it may be missing then, the older one left as DIR.old.
absl::Status ReplaceFolder(const std::string& dir, const std::string& with);

}  // namespace thinwire
