// A temporary folder of one command.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace thinwire {

// The destructor removes the folder with everything in it. A process that is killed leaves its
// folder behind, with a lock file that nobody holds; the next process that makes a temporary folder
// there removes it.
class TemporaryFolder {
 public:
  // Makes NAME-XXXXXX in `place`, by default in $TMPDIR or else /tmp, with mode 0700. Errors name
  // the path.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(const std::string& name,
                                                               std::string place = "");
  ~TemporaryFolder();

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  const std::string path_;
  const int lock_;  // descriptor, closed when a child executes another program
};

}  // namespace thinwire
