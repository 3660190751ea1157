#include "third_party/cuda_on_host/fiber.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#ifndef __x86_64__
#error "fibers are written for x86-64"
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_HOST_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_HOST_ASAN
#endif
#ifdef CUDA_ON_HOST_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Switches stacks. Pushes the registers that a called function must preserve, stores the stack
// pointer in *from (rdi), takes `to` (rsi) as the new one, and pops that stack's registers. It
// returns to where the other side called it: the same place, which the processor predicts.
extern "C" __attribute__((visibility("hidden"))) void cuda_on_host_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.hidden cuda_on_host_switch
.globl cuda_on_host_switch
.type cuda_on_host_switch,@function
cuda_on_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_on_host_switch,.-cuda_on_host_switch
)");

namespace cuda_on_host {
namespace {

constexpr size_t kGuardBytes = 4096;
#ifdef CUDA_ON_HOST_ASAN
constexpr size_t kStackBytes = 512 << 10;  // more, for the sanitizer's red zones around variables

void BeforeSwitch(void** own_fake_stack, const void* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(own_fake_stack, bottom, bytes);
}
void AfterSwitch(void* own_fake_stack, const void** bottom, size_t* bytes) {
  __sanitizer_finish_switch_fiber(own_fake_stack, bottom, bytes);
}
void ForgetPoison(void* memory, size_t bytes) { __asan_unpoison_memory_region(memory, bytes); }
#else
constexpr size_t kStackBytes = 128 << 10;

void BeforeSwitch(void**, const void*, size_t) {}
void AfterSwitch(void*, const void**, size_t*) {}
void ForgetPoison(void*, size_t) {}
#endif

// Fiber that ran last and the one that runs; without constructors, so that a use does not ask.
__thread Fiber* left = nullptr;
__thread Fiber* entered = nullptr;

// Stacks begin at different places in a page: the place chooses the set of the first cache in which
// the same variable of each of a block's threads would drive those of the others out. The range is
// eight pages for the sake of the sanitizer's shadow, an eighth as large.
constexpr size_t kMostOffset = 32 << 10;
size_t NextOffset() {
  static __thread size_t offset = 0;
  return offset = (offset + 576) % kMostOffset;  // 64 lines of a page, and as many of its shadow
}

}  // namespace

Fiber::Fiber(void (*run)(void*), void* argument) : run_(run), argument_(argument) {
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    perror("cuda_on_host: a stack for a thread of a block");
    abort();
  }
  mapping_ = static_cast<char*>(memory);
  bottom_ = mapping_ + kGuardBytes;
  bytes_ = kStackBytes;
  // Lays the new stack out as cuda_on_host_switch leaves one: six registers, then the address to go
  // on at. The zero above stands where Start's return address would be. It ends the walk of a
  // debugger, and it aligns the stack as after a call.
  char* const end = mapping_ + kGuardBytes + kStackBytes - NextOffset();
  void** top = reinterpret_cast<void**>(end) - 8;
  top[6] = reinterpret_cast<void*>(&Fiber::Start);
  stack_pointer_ = top;
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
  ForgetPoison(mapping_ + kGuardBytes, kStackBytes);
  munmap(mapping_, kGuardBytes + kStackBytes);
}

void Fiber::Start() {
  AfterSwitch(nullptr, &left->bottom_, &left->bytes_);
  entered->run_(entered->argument_);
  abort();
}

void Fiber::SwitchTo(Fiber* next) {
  left = this;
  entered = next;
  BeforeSwitch(&fake_stack_, next->bottom_, next->bytes_);
  cuda_on_host_switch(&stack_pointer_, next->stack_pointer_);
  AfterSwitch(fake_stack_, &left->bottom_, &left->bytes_);
}

}  // namespace cuda_on_host
