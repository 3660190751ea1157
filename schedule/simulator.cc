#include "schedule/simulator.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

namespace thinwire {
namespace {

// Work items that follow one another, run as early as they can be.
class TaskGraph {
 public:
  // An item that also follows `before` (-1: none), the item its worker does just before it.
  int Add(double seconds, bool needs_core, int before) {
    const int task = static_cast<int>(tasks_.size());
    tasks_.push_back({seconds, needs_core && seconds > 0, {}, 0, 0});
    if (before >= 0) Follow(task, before, 0);
    return task;
  }

  // `task` starts no sooner than `delay` after the end of `before`.
  void Follow(int task, int before, double delay) {
    tasks_[before].next.push_back({task, delay});
    ++tasks_[task].blockers;
  }

  // Runs everything; the time when the last item ends. cores 0: no limit.
  double Run(int cores) {
    free_cores_ = cores == 0 ? std::numeric_limits<int>::max() : cores;
    for (int task = 0; task < static_cast<int>(tasks_.size()); ++task) {
      if (tasks_[task].blockers == 0) events_.push({0, Event::Kind::kReady, task});
    }
    double now = 0;
    while (!events_.empty()) {
      now = events_.top().seconds;
      do {  // at least one: NaN seconds are not equal to themselves
        const Event event = events_.top();
        events_.pop();
        event.kind == Event::Kind::kReady ? Ready(event.task, now) : End(event.task, now);
      } while (!events_.empty() && events_.top().seconds == now);
      StartWaiting(now);
    }
    return now;
  }

 private:
  struct Successor {
    int task;
    double delay;
  };
  struct Task {
    double seconds;
    bool needs_core;
    std::vector<Successor> next;
    int blockers;          // predecessors that have not ended
    double ready_seconds;  // so far the latest that a predecessor allows
  };
  struct Event {
    double seconds;
    enum class Kind { kReady, kEnd } kind;
    int task;
    friend bool operator>(const Event& a, const Event& b) {
      return std::tie(a.seconds, a.task) > std::tie(b.seconds, b.task);
    }
  };
  struct Waiting {
    double since_seconds;
    int task;
    friend bool operator>(const Waiting& a, const Waiting& b) {
      return std::tie(a.since_seconds, a.task) > std::tie(b.since_seconds, b.task);
    }
  };

  void Ready(int task, double now) {
    if (tasks_[task].needs_core) {
      waiting_.push({now, task});
    } else {
      Start(task, now);
    }
  }

  void Start(int task, double now) {
    events_.push({now + tasks_[task].seconds, Event::Kind::kEnd, task});
  }

  void End(int task, double now) {
    if (tasks_[task].needs_core) ++free_cores_;
    for (const Successor& next : tasks_[task].next) {
      Task& follower = tasks_[next.task];
      follower.ready_seconds = std::max(follower.ready_seconds, now + next.delay);
      if (--follower.blockers == 0) {
        events_.push({follower.ready_seconds, Event::Kind::kReady, next.task});
      }
    }
  }

  // Only when all events of a moment are known is it known who has waited longest.
  void StartWaiting(double now) {
    for (; free_cores_ > 0 && !waiting_.empty(); --free_cores_) {
      Start(waiting_.top().task, now);
      waiting_.pop();
    }
  }

  std::vector<Task> tasks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  int free_cores_ = 0;
};

// Task numbers of the actions of one stage, by microbatch.
struct StageTasks {
  std::vector<int> forward, backward;
};

StageTasks AddStage(const Simulation& simulation, int stage, TaskGraph* graph) {
  const StageCost& cost = simulation.stages[stage];
  StageTasks tasks;
  int last = -1;
  for (const Action& action :
       StageActions(simulation.schedule, stage, static_cast<int>(simulation.stages.size()),
                    simulation.microbatches)) {
    const bool forward = action.kind == Action::Kind::kForward;
    last = graph->Add(forward ? cost.forward_seconds : cost.backward_seconds,
                      /*needs_core=*/true, last);
    (forward ? tasks.forward : tasks.backward).push_back(last);
  }
  graph->Add(cost.update_seconds, /*needs_core=*/true, last);
  return tasks;
}

// One boundary and direction: message i leaves after producers[i] and lets consumers[i] start.
void AddMessages(const TransferCost& cost, const LinkRate& link, const std::vector<int>& producers,
                 const std::vector<int>& consumers, TaskGraph* graph) {
  const double link_seconds =
      link.bits_per_second > 0 ? 8 * cost.wire_bytes / link.bits_per_second : 0;
  int encode = -1, send = -1, decode = -1;
  for (size_t i = 0; i < producers.size(); ++i) {
    encode = graph->Add(cost.encode_seconds, /*needs_core=*/true, encode);
    graph->Follow(encode, producers[i], 0);
    send = graph->Add(link_seconds, /*needs_core=*/false, send);
    graph->Follow(send, encode, 0);
    decode = graph->Add(cost.decode_seconds, /*needs_core=*/true, decode);
    graph->Follow(decode, send, link.latency_seconds);
    graph->Follow(consumers[i], decode, 0);
  }
}

}  // namespace

Makespan Simulate(const Simulation& simulation) {
  const size_t stages = simulation.stages.size();
  assert(stages >= 1 && simulation.microbatches >= 1 && simulation.cores >= 0);
  assert(simulation.activations.size() == stages - 1);
  assert(simulation.gradients.size() == stages - 1);
  TaskGraph graph;
  std::vector<StageTasks> tasks;
  for (size_t s = 0; s < stages; ++s) {
    tasks.push_back(AddStage(simulation, static_cast<int>(s), &graph));
  }
  for (size_t b = 0; b + 1 < stages; ++b) {
    AddMessages(simulation.activations[b], simulation.link, tasks[b].forward, tasks[b + 1].forward,
                &graph);
    AddMessages(simulation.gradients[b], simulation.link, tasks[b + 1].backward, tasks[b].backward,
                &graph);
  }

  Makespan makespan;
  makespan.seconds = graph.Run(simulation.cores);
  for (const StageCost& cost : simulation.stages) {
    makespan.busy_seconds.push_back(simulation.microbatches *
                                        (cost.forward_seconds + cost.backward_seconds) +
                                    cost.update_seconds);
  }
  const double busy =
      std::accumulate(makespan.busy_seconds.begin(), makespan.busy_seconds.end(), 0.0);
  if (makespan.seconds > 0) {
    makespan.bubble_ratio = 1 - busy / (static_cast<double>(stages) * makespan.seconds);
  }
  return makespan;
}

}  // namespace thinwire
