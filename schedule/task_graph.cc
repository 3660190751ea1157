#include "schedule/task_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace thinwire {

TaskGraph::TaskGraph(std::vector<double> capacities) : network_(std::move(capacities)) {}

int TaskGraph::Add(double seconds, bool needs_core, int before) {
  return Add(Task{seconds, needs_core && seconds > 0, {}, {}}, before);
}

int TaskGraph::AddMessage(double bits, const Route& route, int before) {
  return Add(Task{bits, /*needs_core=*/false, route, {}}, before);
}

int TaskGraph::Add(Task task, int before) {
  const int number = static_cast<int>(tasks_.size());
  tasks_.push_back(std::move(task));
  if (before >= 0) Follow(number, before, 0);
  return number;
}

void TaskGraph::Follow(int task, int before, double delay) {
  tasks_[before].next.push_back({task, delay});
  ++tasks_[task].blockers;
}

double TaskGraph::Run(int cores, int machines) {
  // Groups of cores for all machines of an item. If the last one has fewer cores, all are slower by
  // as much.
  const int groups = (cores + machines - 1) / machines;
  free_cores_ = cores == 0 ? std::numeric_limits<int>::max() : groups;
  if (cores > 0) stretch_ = static_cast<double>(groups) * machines / cores;
  for (int task = 0; task < static_cast<int>(tasks_.size()); ++task) {
    if (tasks_[task].blockers == 0) events_.push({0, Event::Kind::kReady, task});
  }
  double now = 0;
  while (!events_.empty() || !network_.empty()) {
    // Something must happen in each turn, even if seconds are NaN, which equals nothing.
    const bool arrives =
        events_.empty() || (!network_.empty() && network_.NextEnd() <= events_.top().seconds);
    now = arrives ? network_.NextEnd() : events_.top().seconds;
    if (arrives) {
      for (const int message : network_.TakeEnded()) End(message, now);
    } else {
      Happen(now);
    }
    while (!events_.empty() && events_.top().seconds == now) Happen(now);
    StartWaiting(now);
    network_.Share(now);
  }
  return now;
}

void TaskGraph::Happen(double now) {
  const Event event = events_.top();
  events_.pop();
  event.kind == Event::Kind::kReady ? Ready(event.task, now) : End(event.task, now);
}

void TaskGraph::Ready(int task, double now) {
  if (tasks_[task].route) {
    network_.Start(task, tasks_[task].amount, *tasks_[task].route, now);
  } else if (tasks_[task].needs_core) {
    waiting_.push({now, task});
  } else {
    Start(task, now);
  }
}

void TaskGraph::Start(int task, double now) {
  const double seconds = tasks_[task].amount * (tasks_[task].needs_core ? stretch_ : 1);
  events_.push({now + seconds, Event::Kind::kEnd, task});
}

void TaskGraph::End(int task, double now) {
  tasks_[task].end_seconds = now;
  if (tasks_[task].needs_core) ++free_cores_;
  for (const Successor& next : tasks_[task].next) {
    Task& follower = tasks_[next.task];
    follower.ready_seconds = std::max(follower.ready_seconds, now + next.delay);
    if (--follower.blockers == 0) {
      events_.push({follower.ready_seconds, Event::Kind::kReady, next.task});
    }
  }
}

void TaskGraph::StartWaiting(double now) {
  for (; free_cores_ > 0 && !waiting_.empty(); --free_cores_) {
    Start(waiting_.top().task, now);
    waiting_.pop();
  }
}

}  // namespace thinwire
