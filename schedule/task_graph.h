// Work items that depend on one another, some of which are messages over a network. Part of the
// simulator; no side effects.
#pragma once

#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "schedule/network.h"

namespace thinwire {

// Each item runs as early as possible.
class TaskGraph {
 public:
  // `capacities` are those of the network that messages cross.
  explicit TaskGraph(std::vector<double> capacities);

  // Adds an item and returns its number. It follows `before`, the item that its worker does just
  // before it (-1: none).
  int Add(double seconds, bool needs_core, int before);
  // Adds a message of `bits` that crosses the network and follows `before`.
  int AddMessage(double bits, const Route& route, int before);
  // Makes `task` start no sooner than `delay` after the end of `before`.
  void Follow(int task, int before, double delay);

  // Runs everything, once, and returns the time when the last item ends. `cores` 0: no limit. An
  // item that needs a core needs one for each of `machines` at once, and takes longer where there
  // are fewer.
  double Run(int cores, int machines);
  // Returns when the item has ended, after Run.
  double EndOf(int task) const { return tasks_[task].end_seconds; }

 private:
  struct Successor {
    int task;
    double delay;
  };
  struct Task {
    double amount;  // seconds, or a message's bits
    bool needs_core;
    std::optional<Route> route;  // of a message
    std::vector<Successor> next;
    int blockers = 0;          // number of predecessors that have not ended
    double ready_seconds = 0;  // latest start that a predecessor has demanded so far
    double end_seconds = 0;
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

  int Add(Task task, int before);
  void Happen(double now);
  void Ready(int task, double now);
  void Start(int task, double now);
  void End(int task, double now);
  // Starts waiting tasks. Who has waited longest is known only after all events of a moment.
  void StartWaiting(double now);

  std::vector<Task> tasks_;
  Network network_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  int free_cores_ = 0;  // groups of as many cores as there are machines
  double stretch_ = 1;  // of the seconds of an item that needs a core
};

}  // namespace thinwire
