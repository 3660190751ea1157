// A file that one process at a time holds: what it stands for is in use until that process ends,
// however it ends.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// Held as long as the object is there; programs that this process starts do not hold it.
class FileLock {
 public:
  // Makes the file `path` where there is none; it stays when the lock is gone, for who removed it
  // could remove the next holder's. AlreadyExists if another process, or another object of this
  // one, holds it: nobody waits. Other errors name the file and what the system said.
  static absl::StatusOr<std::unique_ptr<FileLock>> Take(const std::string& path);
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}

  int file_;  // descriptor, owned; the kernel frees the lock with it
};

}  // namespace thinwire
