// A file descriptor that its owner closes.
#pragma once

#include <unistd.h>

#include <utility>

namespace thinwire {

// Owns a descriptor and closes it.
class OwnedDescriptor {
 public:
  // `fd` is an open descriptor, or negative: none.
  explicit OwnedDescriptor(int fd) : fd_(fd) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(other.Release()) {}
  OwnedDescriptor& operator=(OwnedDescriptor&&) = delete;
  ~OwnedDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  // Gives the descriptor to the caller.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace thinwire
