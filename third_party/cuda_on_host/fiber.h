// Runs a function on a stack of its own, so that it can be suspended and resumed.
#pragma once

#include <cstddef>

namespace cuda_on_host {

// Function with its stack. It stays on the host thread that made it.
class Fiber {
 public:
  // `run(argument)` starts with the first Resume and must never return.
  Fiber(void (*run)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the function until it calls Suspend. Must not be called from within a fiber.
  void Resume();
  // Returns to the caller of Resume. Called from within the fiber.
  void Suspend();

 private:
  static void Start();

  void (*const run_)(void*);
  void* const argument_;
  char* mapping_;  // memory: a guard page, then the stack
  // Stack pointers of the fiber and of the host thread; only that of the one not running is valid.
  void* fiber_stack_ = nullptr;
  void* host_stack_ = nullptr;
  // Values that the address sanitizer wants at each switch of stacks.
  void* fiber_fake_stack_ = nullptr;
  const void* host_bottom_ = nullptr;
  size_t host_bytes_ = 0;
};

}  // namespace cuda_on_host
