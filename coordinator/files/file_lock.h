// A lock file that one process holds at a time. It shows that something is in use until that
// process ends, however it ends.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/owned_descriptor.h"

namespace thinwire {

// A held lock; the destructor frees it. Programs that this process starts do not hold it.
class FileLock {
 public:
  // Takes the lock on the file `path`, which is created if needed. It stays when the lock is freed:
  // removing it could remove the next holder's. AlreadyExists, without waiting, if another process
  // or another object of this process holds it. Other errors name the file and the system's
  // message.
  static absl::StatusOr<std::unique_ptr<FileLock>> Take(const std::string& path);

 private:
  explicit FileLock(OwnedDescriptor file) : file_(std::move(file)) {}

  const OwnedDescriptor file_;  // closing it frees the lock
};

}  // namespace thinwire
