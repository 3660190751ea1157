// A folder for what only one command needs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace thinwire {

// Removed with everything in it when this object goes. A process that is killed leaves its folders
// behind, each with a lock file that nobody holds any more: the next that makes one removes them.
class TemporaryFolder {
 public:
  // NAME-XXXXXX in `place`, by default $TMPDIR, or /tmp without one; mode 0700. Errors name the
  // path.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(const std::string& name,
                                                               std::string place = "");
  ~TemporaryFolder();

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  const std::string path_;
  const int lock_;  // a descriptor, closed when a child becomes another program
};

}  // namespace thinwire
