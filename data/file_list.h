// Files that a path of an experiment stands for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// Returns the files of `path`, sorted bytewise: the file of that name; if there is none, those of
// its folder whose names match its last part, a pattern of `*`, `?` and `[a-z]`; of a folder all in
// it and in the folders below. Names that begin with a point are left out where they are not asked
// for, as are files that programs here keep beside a text (64 hexadecimal digits and ".tokens" or
// ".packs") unless one is `path`. A link to a file is that file; none to a folder is followed.
// Errors name `field`, such as "data.file", and the path: NotFound where nothing is there, or
// nothing that is read.
absl::StatusOr<std::vector<std::string>> FilesAt(const std::string& field, const std::string& path);

}  // namespace thinwire
