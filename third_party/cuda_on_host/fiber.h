// Runs a function on a stack of its own, so that it can be suspended and resumed.
#pragma once

#include <cstddef>

namespace cuda_on_host {

// Stack with what runs on it: a function, or the host thread that switches to such functions. It
// stays on the host thread that made it.
class Fiber {
 public:
  // That of the calling host thread.
  Fiber() = default;
  // `run(argument)` starts with the first switch to it and must never return.
  Fiber(void (*run)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on with `next`. Called on this fiber; returns when another switches back to it.
  void SwitchTo(Fiber* next);

 private:
  static void Start();

  void (*run_)(void*) = nullptr;
  void* argument_ = nullptr;
  char* mapping_ = nullptr;        // memory: a guard page, then the stack; null for a host thread
  void* stack_pointer_ = nullptr;  // while another fiber runs
  // Values that the address sanitizer wants at each switch of stacks.
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace cuda_on_host
