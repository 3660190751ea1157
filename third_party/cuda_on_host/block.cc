#include "third_party/cuda_on_host/block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "third_party/cuda_on_host/fiber.h"

__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

namespace cuda_on_host {
namespace {

// Point where threads meet, once in each generation. What they bring is kept in two slots, by
// generation % 2. While a thread has not read its generation's slot, it has not come to the next
// meeting, so the next cannot complete, and nobody reaches the one after, which reuses the slot.
struct Barrier {
  uint64_t generation = 0;     // how often all have met
  int arrived = 0;             // threads that have come in this generation
  const Site* site = nullptr;  // place at which the first of this generation came
};

struct Warp {
  Barrier barrier;
  uint64_t values[2][kWarp];
  uint32_t ballot[2];
};

struct Thread {
  enum State { kNotStarted, kRunning, kWaiting, kDone } state = kNotStarted;
  // While it waits:
  Fiber* fiber = nullptr;
  const Barrier* barrier = nullptr;
  uint64_t generation = 0;
  const Site* site = nullptr;  // on its stack
};

enum class Order { kForward, kReverse, kShuffle };

Order OrderFromEnvironment() {
  const char* name = getenv("THINWIRE_EMULATED_ORDER");
  if (name == nullptr || *name == '\0' || strcmp(name, "forward") == 0) return Order::kForward;
  if (strcmp(name, "reverse") == 0) return Order::kReverse;
  if (strcmp(name, "shuffle") == 0) return Order::kShuffle;
  fprintf(stderr,
          "cuda_on_host: THINWIRE_EMULATED_ORDER is '%s', want forward, reverse or shuffle\n",
          name);
  abort();
}

bool Same(const char* a, const char* b) { return a == b || strcmp(a, b) == 0; }

bool Same(const Site& a, const Site& b) {
  return a.line == b.line && Same(a.function, b.function) && Same(a.file, b.file);
}

std::string Described(const Thread& thread) {
  switch (thread.state) {
    case Thread::kNotStarted:
      return "have not started";
    case Thread::kRunning:
      return "run";
    case Thread::kDone:
      return "have returned";
    case Thread::kWaiting:
      break;
  }
  return std::string("wait at ") + thread.site->function + ", " + thread.site->file + ":" +
         std::to_string(thread.site->line);
}

// Fibers of a host thread, which keeps them for its later blocks.
struct Fibers {
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<Fiber*> free;
};
thread_local Fibers fibers;

// Runs the blocks of one grid, one at a time. A fiber takes one thread that has not started after
// the other, so a single fiber runs them all as long as no thread waits. A thread that waits keeps
// its fiber, and a further fiber goes on with the threads that have not started.
class Block {
 public:
  Block(int num_threads, const std::function<void()>& body);

  void Run();
  int MeetAll(const Site& site, bool predicate);
  WarpValues MeetWarp(const Site& site, uint32_t mask, uint64_t value);

 private:
  static void FiberMain(void*);

  // Those that are not inlined have variables on the stack: red zones, sanitized, at each switch.
  [[gnu::noinline]] void ShuffleSequence();
  [[gnu::noinline]] Fiber* FreeFiber();
  void StartThreads();
  Fiber* NextFiber();
  int NextReleased();
  void SwitchToNext();
  void EnterThread(int index);
  // Counts the running thread in; returns when `members` threads have come.
  void Meet(Barrier* barrier, int members, const Site& site);
  [[noreturn, gnu::noinline]] void Fail(const char* problem) const;

  const std::function<void()>& body_;
  const Order order_;
  std::minstd_rand generator_{1};
  std::vector<int> sequence_;  // order in which threads run from meeting to meeting
  size_t num_passed_ = 0;      // of sequence_, since all have started
  bool any_resumed_ = true;    // of those
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  Barrier barrier_;
  int count_[2];
  size_t num_started_ = 0;
  size_t num_done_ = 0;
  int current_ = 0;
  Fiber host_;
  Fiber* fiber_ = &host_;  // that of thread current_
};
thread_local Block* block = nullptr;

Block::Block(int num_threads, const std::function<void()>& body)
    : body_(body),
      order_(OrderFromEnvironment()),
      sequence_(num_threads),
      threads_(num_threads),
      warps_(num_threads / kWarp) {
  for (int i = 0; i < num_threads; ++i) {
    sequence_[i] = order_ == Order::kReverse ? num_threads - 1 - i : i;
  }
}

void Block::Run() {
  for (Thread& thread : threads_) thread.state = Thread::kNotStarted;
  num_started_ = num_done_ = 0;
  num_passed_ = threads_.size();
  any_resumed_ = true;
  if (order_ == Order::kShuffle) ShuffleSequence();
  SwitchToNext();
}

void Block::FiberMain(void*) {
  Fiber* const self = block->fiber_;
  for (;;) {
    block->StartThreads();
    fibers.free.push_back(self);
    block->SwitchToNext();
  }
}

void Block::ShuffleSequence() { std::shuffle(sequence_.begin(), sequence_.end(), generator_); }

Fiber* Block::FreeFiber() {
  if (fibers.free.empty()) {
    fibers.all.push_back(std::make_unique<Fiber>(&FiberMain, nullptr));
    return fibers.all.back().get();
  }
  Fiber* const fiber = fibers.free.back();
  fibers.free.pop_back();
  return fiber;
}

void Block::StartThreads() {
  while (num_started_ < threads_.size()) {
    const int index = sequence_[num_started_++];
    EnterThread(index);
    body_();
    threads_[index].state = Thread::kDone;
    ++num_done_;
  }
}

// Returns the fiber that goes on: with threads that have not started, or with one whose meeting is
// complete; when all are done, the host's.
Fiber* Block::NextFiber() {
  if (num_started_ < threads_.size()) return FreeFiber();
  for (;;) {
    if (const int index = NextReleased(); index >= 0) {
      EnterThread(index);
      return threads_[index].fiber;
    }
    if (num_done_ == threads_.size()) return &host_;
    if (!any_resumed_) Fail("threads wait for others that do not come");
    if (order_ == Order::kShuffle) ShuffleSequence();
    num_passed_ = 0;
    any_resumed_ = false;
  }
}

// Returns the next of sequence_ that waits for a meeting that is complete; -1 at its end.
int Block::NextReleased() {
  while (num_passed_ < sequence_.size()) {
    const int index = sequence_[num_passed_++];
    const Thread& thread = threads_[index];
    if (thread.state == Thread::kWaiting && thread.barrier->generation != thread.generation) {
      any_resumed_ = true;
      return index;
    }
  }
  return -1;
}

void Block::SwitchToNext() {
  Fiber* const last = fiber_;
  fiber_ = NextFiber();
  if (fiber_ != last) last->SwitchTo(fiber_);
}

void Block::EnterThread(int index) {
  current_ = index;
  threads_[index].state = Thread::kRunning;
  threadIdx = {static_cast<unsigned>(index), 0, 0};
}

void Block::Meet(Barrier* barrier, int members, const Site& site) {
  Thread& thread = threads_[current_];
  thread.state = Thread::kWaiting;
  thread.fiber = fiber_;
  thread.barrier = barrier;
  thread.generation = barrier->generation;
  thread.site = &site;
  if (barrier->arrived == 0) barrier->site = &site;
  if (!Same(*barrier->site, site)) Fail("threads that must meet are at different places");
  if (++barrier->arrived == members) {
    barrier->arrived = 0;
    ++barrier->generation;
  }
  SwitchToNext();  // also the last to come, so that all go on in the order of sequence_
}

int Block::MeetAll(const Site& site, bool predicate) {
  int* const count = &count_[barrier_.generation % 2];
  if (barrier_.arrived == 0) *count = 0;
  *count += predicate;
  Meet(&barrier_, static_cast<int>(threads_.size()), site);
  return *count;
}

WarpValues Block::MeetWarp(const Site& site, uint32_t mask, uint64_t value) {
  if (mask != 0xffffffffu) {
    fprintf(stderr, "cuda_on_host: %s:%d: %s with mask 0x%08x, want 0xffffffff\n", site.file,
            site.line, site.function, mask);
    abort();
  }
  Warp* const warp = &warps_[current_ / kWarp];
  const int lane = current_ % kWarp;
  const int side = warp->barrier.generation % 2;
  if (warp->barrier.arrived == 0) warp->ballot[side] = 0;
  warp->values[side][lane] = value;
  warp->ballot[side] |= static_cast<uint32_t>(value != 0) << lane;
  Meet(&warp->barrier, kWarp, site);
  return {warp->values[side], warp->ballot[side]};
}

void Block::Fail(const char* problem) const {
  fprintf(stderr, "cuda_on_host: block (%u, %u, %u): %s\n", blockIdx.x, blockIdx.y, blockIdx.z,
          problem);
  for (size_t first = 0, last; first < threads_.size(); first = last) {
    const std::string what = Described(threads_[first]);
    last = first + 1;
    while (last < threads_.size() && Described(threads_[last]) == what) ++last;
    fprintf(stderr, "  threads %zu to %zu %s\n", first, last - 1, what.c_str());
  }
  abort();
}

}  // namespace

void RunGrid(dim3 grid, dim3 block_size, const std::function<void()>& thread) {
  Block one(static_cast<int>(block_size.x), thread);
  block = &one;
  gridDim = grid;
  blockDim = block_size;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        one.Run();
      }
    }
  }
  block = nullptr;
}

int MeetBlock(const Site& site, bool predicate) { return block->MeetAll(site, predicate); }

WarpValues MeetWarp(const Site& site, uint32_t mask, uint64_t value) {
  return block->MeetWarp(site, mask, value);
}

}  // namespace cuda_on_host
