// A stack of its own on which a function can be put aside and taken up again.
#pragma once

#include <cstddef>

namespace cuda_on_host {

// Stays on the host thread that made it.
class Fiber {
 public:
  // `run(argument)` starts with the first Resume and never returns.
  Fiber(void (*run)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on with the function until it calls Suspend. Not from within a fiber.
  void Resume();
  // From within the fiber: returns from Resume.
  void Suspend();

 private:
  static void Start();

  void (*const run_)(void*);
  void* const argument_;
  char* mapping_;                // a guard page, then the stack
  void* fiber_stack_ = nullptr;  // the stack pointer of whichever of the two is not running
  void* host_stack_ = nullptr;
  // What the address sanitizer wants to know.
  void* fiber_fake_stack_ = nullptr;
  const void* host_bottom_ = nullptr;
  size_t host_bytes_ = 0;
};

}  // namespace cuda_on_host
