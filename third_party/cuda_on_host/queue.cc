#include "third_party/cuda_on_host/queue.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace cuda_on_host {
namespace {

// Most pieces of work that wait. A queue with more runs them all though nobody waits, as a device
// too makes progress by itself.
constexpr int64_t kMostPending = 256;

std::mutex queues_mutex;
std::vector<std::shared_ptr<Queue>> queues;  // guarded by queues_mutex

bool Eager() {
  const char* name = getenv("THINWIRE_EMULATED_STREAMS");
  if (name == nullptr || *name == '\0' || strcmp(name, "late") == 0) return false;
  if (strcmp(name, "eager") == 0) return true;
  fprintf(stderr, "cuda_on_host: THINWIRE_EMULATED_STREAMS is '%s', want late or eager\n", name);
  abort();
}

}  // namespace

void Queue::Add(Work work) {
  int64_t added;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    pending_.push_back(std::move(work));
    added = ++num_added_;
  }
  if (Eager() || added - num_done_ > kMostPending) Finish();
}

void Queue::Finish() {
  const int64_t target = num_added_;
  RunWhile([this, target] { return num_done_ < target; });
}

// Another thread may run this queue's work. What this one waits for may then be done before it can
// run work itself, so it polls.
void Queue::RunWhile(const std::function<bool()>& wanted) {
  while (wanted()) {
    const int64_t before = num_done_;
    RunOne();
    if (num_done_ == before) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void Queue::RunOne() {
  if (running_.exchange(true)) return;
  Work work;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!pending_.empty()) {
      work = std::move(pending_.front());
      pending_.pop_front();
    }
  }
  if (work) {
    work();
    work = nullptr;
    ++num_done_;
  }
  running_ = false;
}

std::shared_ptr<Queue> NewQueue() {
  std::lock_guard<std::mutex> lock(queues_mutex);
  queues.push_back(std::make_shared<Queue>());
  return queues.back();
}

void DropQueue(const std::shared_ptr<Queue>& queue) {
  std::lock_guard<std::mutex> lock(queues_mutex);
  queues.erase(std::remove(queues.begin(), queues.end(), queue), queues.end());
}

void FinishEveryQueue() {
  std::vector<std::shared_ptr<Queue>> all;
  {
    std::lock_guard<std::mutex> lock(queues_mutex);
    all = queues;
  }
  for (const std::shared_ptr<Queue>& queue : all) queue->Finish();
}

}  // namespace cuda_on_host
