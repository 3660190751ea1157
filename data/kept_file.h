// Files that are written once, beside what they are made of, and then only read, by any number of
// processes.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/owned_descriptor.h"

namespace thinwire {

// An open file. It may have no name any more; `path` is for messages.
struct KeptFile {
  std::string path;
  OwnedDescriptor file;
};

// Writes all of a new file. Errors that are the file's, and not those of what is written, are also
// in *of_file.
using FileWriter = std::function<absl::Status(const KeptFile& file, absl::Status* of_file)>;
// Returns whether the file is one that a FileWriter has made.
using FileCheck = std::function<bool(const KeptFile& file)>;

// Opens FOLDER/NAME if `is_good` says so. Otherwise `write` makes it; where the folder cannot be
// used, or is full, it makes a file without a name in the folder of temporary files, which vanishes
// when it is closed, however the process ends. Errors of `write`, of writing there, and DataLoss
// for a new file that is not good.
absl::StatusOr<KeptFile> OpenOrWrite(const std::string& folder, const std::string& name,
                                     const FileCheck& is_good, const FileWriter& write);

}  // namespace thinwire
