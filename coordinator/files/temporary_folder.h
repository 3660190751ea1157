// A folder for what only one command needs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace thinwire {

// Removed with everything in it when this object goes.
class TemporaryFolder {
 public:
  // NAME-XXXXXX in $TMPDIR, or in /tmp without one. Errors name the path.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(const std::string& name);
  ~TemporaryFolder();

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

}  // namespace thinwire
