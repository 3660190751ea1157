// Memory that one thread reuses for every message, so that a message allocates nothing.
#pragma once

#include <cstddef>
#include <memory>

namespace thinwire {

// Memory that only grows. Get returns at least `n` uninitialised elements; growing drops the
// contents.
template <typename T>
class Scratch {
 public:
  T* Get(size_t n) {
    if (n > capacity_) {
      memory_.reset();
      memory_.reset(new T[n]);
      capacity_ = n;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<T[]> memory_;
  size_t capacity_ = 0;
};

}  // namespace thinwire
