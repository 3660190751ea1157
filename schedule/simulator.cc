#include "schedule/simulator.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/enum_names.h"
#include "schedule/network.h"
#include "schedule/slicing.h"

namespace thinwire {
namespace {

constexpr Named<Nic> kNics[] = {{Nic::kShared, "shared"}, {Nic::kPrivate, "private"}};

// Work items that depend on one another; each runs as early as possible.
class TaskGraph {
 public:
  // `capacities` are those of the network that messages cross.
  explicit TaskGraph(std::vector<double> capacities) : network_(std::move(capacities)) {}

  // Adds an item. It follows `before`, the item that its worker does just before it (-1: none).
  int Add(double seconds, bool needs_core, int before) {
    return Add({seconds, needs_core && seconds > 0, {}, {}, 0, 0}, before);
  }

  // Adds a message of `bits` that crosses the network and follows `before`.
  int AddMessage(double bits, const Route& route, int before) {
    return Add({bits, /*needs_core=*/false, route, {}, 0, 0}, before);
  }

  // Makes `task` start no sooner than `delay` after the end of `before`.
  void Follow(int task, int before, double delay) {
    tasks_[before].next.push_back({task, delay});
    ++tasks_[task].blockers;
  }

  // Runs everything and returns the time when the last item ends. `cores` 0: no limit.
  double Run(int cores) {
    free_cores_ = cores == 0 ? std::numeric_limits<int>::max() : cores;
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
    int blockers;          // number of predecessors that have not ended
    double ready_seconds;  // latest start that a predecessor has demanded so far
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

  int Add(Task task, int before) {
    const int number = static_cast<int>(tasks_.size());
    tasks_.push_back(std::move(task));
    if (before >= 0) Follow(number, before, 0);
    return number;
  }

  void Happen(double now) {
    const Event event = events_.top();
    events_.pop();
    event.kind == Event::Kind::kReady ? Ready(event.task, now) : End(event.task, now);
  }

  void Ready(int task, double now) {
    if (tasks_[task].route) {
      network_.Start(task, tasks_[task].amount, *tasks_[task].route, now);
    } else if (tasks_[task].needs_core) {
      waiting_.push({now, task});
    } else {
      Start(task, now);
    }
  }

  void Start(int task, double now) {
    events_.push({now + tasks_[task].amount, Event::Kind::kEnd, task});
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

  // Starts waiting tasks. Who has waited longest is known only after all events of a moment.
  void StartWaiting(double now) {
    for (; free_cores_ > 0 && !waiting_.empty(); --free_cores_) {
      Start(waiting_.top().task, now);
      waiting_.pop();
    }
  }

  std::vector<Task> tasks_;
  Network network_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  int free_cores_ = 0;
};

// Seconds of an action for a whole microbatch, and the part of them that any slice takes in full.
struct ActionSeconds {
  double whole, any;
};

ActionSeconds SecondsOf(Action::Kind kind, const ChunkCost& cost) {
  const double weight_share =
      cost.backward_seconds > 0 ? cost.weight_seconds / cost.backward_seconds : 0;
  const double pass = 2 * cost.pass_seconds;
  switch (kind) {
    case Action::Kind::kForward:
      return {cost.forward_seconds, cost.pass_seconds};
    case Action::Kind::kBackward:
      return {cost.backward_seconds, pass};
    case Action::Kind::kBackwardInput:
      return {cost.backward_seconds - cost.weight_seconds, pass * (1 - weight_share)};
    case Action::Kind::kBackwardWeight:
      break;
  }
  return {cost.weight_seconds, pass * weight_share};
}

// The slices of a sequence.
class Parts {
 public:
  // `lengths` are those of the slices; empty: a single slice.
  explicit Parts(const std::vector<int64_t>& lengths) {
    int64_t end = 0;
    for (const int64_t length : lengths) ends_.push_back(static_cast<double>(end += length));
    if (ends_.empty()) ends_ = {1};
    for (double& share : ends_) share /= ends_.back();
  }

  int count() const { return static_cast<int>(ends_.size()); }
  // Return shares of a microbatch's cost: of time, which SliceShare divides, and of what each
  // position has equally.
  double Time(int unit, double attention_share) const {
    return SliceShare(Begin(unit), End(unit), attention_share);
  }
  double Positions(int unit) const { return End(unit) - Begin(unit); }

 private:
  double Begin(int unit) const { return unit % count() == 0 ? 0 : ends_[unit % count() - 1]; }
  double End(int unit) const { return ends_[unit % count()]; }

  std::vector<double> ends_;
};

// Numbers of a chunk's tasks that exchange messages, by microbatch.
struct ChunkTasks {
  std::vector<int> forward, backward;
};

// `chunks` are those of the model, in its order.
void AddStage(const Simulation& simulation, const Parts& parts, int stage,
              std::vector<ChunkTasks>* chunks, TaskGraph* graph) {
  const int stages = simulation.stages();
  int last = -1;
  for (const Action& action :
       StageActions(simulation.schedule, stage, stages, simulation.microbatches,
                    simulation.chunks_per_stage, parts.count())) {
    const int chunk = action.chunk * stages + stage;
    const ChunkCost& cost = simulation.chunks[chunk];
    ChunkTasks& tasks = (*chunks)[chunk];
    const ActionSeconds seconds = SecondsOf(action.kind, cost);
    const double share = parts.Time(action.microbatch, cost.attention_share);
    last =
        graph->Add(seconds.any + (seconds.whole - seconds.any) * share, /*needs_core=*/true, last);
    if (action.kind == Action::Kind::kBackwardWeight) continue;
    (action.kind == Action::Kind::kForward ? tasks.forward : tasks.backward).push_back(last);
  }
  double update_seconds = 0;
  for (size_t chunk = stage; chunk < simulation.chunks.size(); chunk += stages) {
    update_seconds += simulation.chunks[chunk].update_seconds;
  }
  graph->Add(update_seconds, /*needs_core=*/true, last);
}

// Capacities returns those of the pipeline's network: two for each stage, or two for each boundary
// and direction. RouteOf returns the two that messages of one boundary and direction use.
std::vector<double> Capacities(const Simulation& simulation) {
  const size_t boundaries = simulation.chunks.size() - 1;
  const size_t interfaces =
      simulation.link.nic == Nic::kShared ? simulation.stages() : 2 * boundaries;
  return std::vector<double>(2 * interfaces, simulation.link.bits_per_second);
}
Route RouteOf(const Simulation& simulation, int boundary, bool gradient) {
  const int stages = simulation.stages();
  const int sender = gradient ? boundary + 1 : boundary, receiver = 2 * boundary + 1 - sender;
  if (simulation.link.nic == Nic::kShared) {
    return {2 * (sender % stages), 2 * (receiver % stages) + 1};
  }
  const int own = 2 * boundary + (gradient ? 1 : 0);
  return {2 * own, 2 * own + 1};
}

// One boundary and direction: the tasks that make its messages and those that wait for them, in
// order.
struct Stream {
  TransferCost cost;
  bool gradient;
  Route route;
  const std::vector<int>& producers;
  const std::vector<int>& consumers;
};

// Adds the encoding, crossing and decoding of each message. While a message crosses, the processors
// of both ends also work, for each of its bytes.
void AddMessages(const Simulation& simulation, const Parts& parts, const Stream& stream,
                 TaskGraph* graph) {
  const TransportCost& transport = simulation.transport;
  const LinkRate& link = simulation.link;
  int encode = -1, cross = -1, decode = -1;
  // Last tasks of the sender's and the receiver's processor during crossings.
  int ends[] = {-1, -1};
  for (size_t i = 0; i < stream.producers.size(); ++i) {
    const int place = static_cast<int>(i);
    const double share =
        parts.Positions(stream.gradient ? UnitOfBackward(place, parts.count()) : place);
    const double bytes = share * stream.cost.wire_bytes;
    encode = graph->Add(share * stream.cost.encode_seconds + transport.seconds_per_message,
                        /*needs_core=*/true, encode);
    graph->Follow(encode, stream.producers[i], 0);
    cross = link.bits_per_second > 0 ? graph->AddMessage(8 * bytes, stream.route, cross)
                                     : graph->Add(/*seconds=*/0, /*needs_core=*/false, cross);
    graph->Follow(cross, encode, 0);
    decode = graph->Add(share * stream.cost.decode_seconds + transport.seconds_per_message,
                        /*needs_core=*/true, decode);
    graph->Follow(decode, cross, link.latency_seconds);
    for (int& end : ends) {
      end = graph->Add(bytes * transport.seconds_per_byte, /*needs_core=*/true, end);
      graph->Follow(end, encode, 0);
      graph->Follow(decode, end, link.latency_seconds);
    }
    graph->Follow(stream.consumers[i], decode, 0);
  }
}

}  // namespace

const char* Name(Nic nic) { return NameIn(kNics, nic); }

absl::Status FromName(const std::string& name, Nic* to) { return FindName("nic", name, kNics, to); }

std::vector<Nic> AllNics() { return ValuesIn(kNics); }

Makespan Simulate(const Simulation& simulation) {
  const size_t chunks = simulation.chunks.size();
  const int stages = simulation.stages();
  assert(stages >= 1 && simulation.microbatches >= 1 && simulation.cores >= 0);
  assert(chunks == static_cast<size_t>(stages) * simulation.chunks_per_stage);
  assert(simulation.activations.size() == chunks - 1);
  assert(simulation.gradients.size() == chunks - 1);
  TaskGraph graph(Capacities(simulation));
  std::vector<ChunkTasks> tasks(chunks);
  const Parts parts(simulation.slices);
  for (int stage = 0; stage < stages; ++stage) AddStage(simulation, parts, stage, &tasks, &graph);
  for (int boundary = 0; boundary + 1 < static_cast<int>(chunks); ++boundary) {
    const ChunkTasks &before = tasks[boundary], &behind = tasks[boundary + 1];
    AddMessages(simulation, parts,
                {simulation.activations[boundary], /*gradient=*/false,
                 RouteOf(simulation, boundary, /*gradient=*/false), before.forward, behind.forward},
                &graph);
    AddMessages(
        simulation, parts,
        {simulation.gradients[boundary], /*gradient=*/true,
         RouteOf(simulation, boundary, /*gradient=*/true), behind.backward, before.backward},
        &graph);
  }

  Makespan makespan;
  makespan.seconds = graph.Run(simulation.cores);
  makespan.busy_seconds.resize(stages);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkCost& cost = simulation.chunks[chunk];
    // Each slice after the first takes the fixed cost of a pass once more, forward once and
    // backward twice.
    makespan.busy_seconds[chunk % stages] +=
        simulation.microbatches * (cost.forward_seconds + cost.backward_seconds +
                                   3 * (parts.count() - 1) * cost.pass_seconds) +
        cost.update_seconds;
  }
  const double busy =
      std::accumulate(makespan.busy_seconds.begin(), makespan.busy_seconds.end(), 0.0);
  if (makespan.seconds > 0) makespan.bubble_ratio = 1 - busy / (stages * makespan.seconds);
  return makespan;
}

}  // namespace thinwire
