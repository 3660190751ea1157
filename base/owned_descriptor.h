// A file descriptor that is closed with the object that owns it.
#pragma once

#include <unistd.h>

#include <utility>

namespace thinwire {

class OwnedDescriptor {
 public:
  // `fd`: an open descriptor; negative: none.
  explicit OwnedDescriptor(int fd) : fd_(fd) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(other.Release()) {}
  OwnedDescriptor& operator=(OwnedDescriptor&&) = delete;
  ~OwnedDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  // Leaves the descriptor to the caller.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace thinwire
