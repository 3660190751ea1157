#include "schedule/simulator.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "schedule/connection.h"
#include "schedule/slicing.h"
#include "schedule/stage_exchange.h"
#include "schedule/task_graph.h"

namespace thinwire {
namespace {

constexpr Named<Nic> kNics[] = {{Nic::kShared, "shared"}, {Nic::kPrivate, "private"}};

// Seconds of an action for a whole microbatch, the part of them that any slice takes in full, and
// those for which it waits besides.
struct ActionSeconds {
  double whole, any, wait;
};

ActionSeconds SecondsOf(Action::Kind kind, const ChunkCost& cost) {
  const double weight_share =
      cost.backward_seconds > 0 ? cost.weight_seconds / cost.backward_seconds : 0;
  const double pass = 2 * cost.pass_seconds;
  switch (kind) {
    case Action::Kind::kForward:
      return {cost.forward_seconds, cost.pass_seconds, cost.forward_wait_seconds};
    case Action::Kind::kBackward:
      return {cost.backward_seconds, pass, cost.backward_wait_seconds};
    case Action::Kind::kBackwardInput:
      return {cost.backward_seconds - cost.weight_seconds, pass * (1 - weight_share),
              cost.backward_wait_seconds};
    case Action::Kind::kBackwardWeight:
      break;
  }
  return {cost.weight_seconds, pass * weight_share, /*wait=*/0};
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

// First and last task of a pass.
struct Pass {
  int begin, end;
};

// A chunk's passes that exchange messages, by microbatch.
struct ChunkTasks {
  std::vector<Pass> forward, backward;
};

// One boundary and direction: the passes that make its messages and those that wait for them, in
// order.
struct Stream {
  TransferCost cost;
  bool gradient;
  Route route;
  const std::vector<Pass>& producers;
  const std::vector<Pass>& consumers;
};

// All tasks of a step.
class Step {
 public:
  explicit Step(const Simulation& simulation)
      : simulation_(simulation),
        parts_(simulation.slices),
        interfaces_(simulation),
        graph_(interfaces_.Capacities()),
        tasks_(simulation.exchange.carriers(), std::vector<ChunkTasks>(simulation.chunks.size())) {
    for (int stage = 0; stage < stages(); ++stage) AddStage(stage);
    for (int carrier = 0; carrier < carriers(); ++carrier) AddMessages(carrier);
  }

  Makespan Run();

 private:
  // First and last task of a machine's exchange.
  struct Exchanged {
    int passes, last;
  };

  int stages() const { return simulation_.stages(); }
  int carriers() const { return simulation_.exchange.carriers(); }

  void AddStage(int stage);
  // Adds the passes of a replica behind the task `last`; returns the last.
  int AddPasses(int carrier, int stage, int last);
  double UpdateSeconds(int stage) const;
  void AddMessages(int carrier);
  void AddMessages(const Stream& stream);
  double BusySeconds(int carrier, int stage) const;

  const Simulation& simulation_;
  const Parts parts_;
  const Interfaces interfaces_;
  TaskGraph graph_;
  std::vector<std::vector<ChunkTasks>> tasks_;     // by carrier and chunk
  std::vector<std::vector<Exchanged>> exchanged_;  // by stage and carrier
};

void Step::AddStage(int stage) {
  StageExchange among(simulation_, stage, &graph_);
  std::vector<Exchanged> exchanged;
  for (int carrier = 0; carrier < carriers(); ++carrier) {
    Exchanged& tasks = exchanged.emplace_back(Exchanged{-1, -1});
    for (const int replica : simulation_.exchange.CarriedBy(carrier)) {
      // A replica contributes the stage's gradient behind its last pass there, all pieces at once.
      tasks.passes = AddPasses(carrier, stage, tasks.last);
      tasks.last = among.Contribute(replica, tasks.passes);
    }
  }
  for (int carrier = 0; carrier < carriers(); ++carrier) {
    exchanged[carrier].last = among.AddUp(carrier, exchanged[carrier].last);
  }
  for (int carrier = 0; carrier < carriers(); ++carrier) {
    exchanged[carrier].last = among.ContributeSecond(carrier, exchanged[carrier].last);
  }
  for (int carrier = 0; carrier < carriers(); ++carrier) {
    exchanged[carrier].last = among.AddUpSecond(carrier, exchanged[carrier].last);
  }
  for (int carrier = 0; carrier < carriers(); ++carrier) {
    exchanged[carrier].last = among.TakeSums(carrier, exchanged[carrier].last);
    graph_.Add(UpdateSeconds(stage), /*needs_core=*/true, exchanged[carrier].last);
  }
  exchanged_.push_back(std::move(exchanged));
}

int Step::AddPasses(int carrier, int stage, int last) {
  for (const Action& action :
       StageActions(simulation_.schedule, stage, stages(), simulation_.microbatches,
                    simulation_.chunks_per_stage, parts_.count())) {
    const int chunk = action.chunk * stages() + stage;
    const ChunkCost& cost = simulation_.chunks[chunk];
    ChunkTasks& tasks = tasks_[carrier][chunk];
    const ActionSeconds seconds = SecondsOf(action.kind, cost);
    const double share = parts_.Time(action.microbatch, cost.attention_share);
    const int begin =
        graph_.Add(seconds.any + (seconds.whole - seconds.any) * share, /*needs_core=*/true, last);
    last = begin;
    if (seconds.wait > 0) {
      const double waits = seconds.wait * parts_.Positions(action.microbatch);
      last = graph_.Add(waits, /*needs_core=*/false, last);
    }
    if (action.kind == Action::Kind::kBackwardWeight) continue;
    (action.kind == Action::Kind::kForward ? tasks.forward : tasks.backward)
        .push_back({begin, last});
  }
  return last;
}

double Step::UpdateSeconds(int stage) const {
  double seconds = 0;
  for (size_t chunk = stage; chunk < simulation_.chunks.size(); chunk += stages()) {
    seconds += simulation_.chunks[chunk].update_seconds;
  }
  return seconds;
}

void Step::AddMessages(int carrier) {
  const std::vector<ChunkTasks>& tasks = tasks_[carrier];
  for (int boundary = 0; boundary + 1 < static_cast<int>(tasks.size()); ++boundary) {
    const ChunkTasks &before = tasks[boundary], &behind = tasks[boundary + 1];
    AddMessages({simulation_.activations[boundary], /*gradient=*/false,
                 interfaces_.OfCut(carrier, boundary, /*gradient=*/false), before.forward,
                 behind.forward});
    AddMessages({simulation_.gradients[boundary], /*gradient=*/true,
                 interfaces_.OfCut(carrier, boundary, /*gradient=*/true), behind.backward,
                 before.backward});
  }
}

// Adds the encoding, crossing and decoding of each message.
void Step::AddMessages(const Stream& stream) {
  const double per_message = simulation_.transport.seconds_per_message;
  Connection connection(simulation_, stream.route, &graph_);
  int encode = -1, decode = -1;
  for (size_t i = 0; i < stream.producers.size(); ++i) {
    const int place = static_cast<int>(i);
    const double share =
        parts_.Positions(stream.gradient ? UnitOfBackward(place, parts_.count()) : place);
    encode =
        graph_.Add(share * stream.cost.encode_seconds + per_message, /*needs_core=*/true, encode);
    graph_.Follow(encode, stream.producers[i].end, 0);
    decode =
        graph_.Add(share * stream.cost.decode_seconds + per_message, /*needs_core=*/true, decode);
    connection.Send(share * stream.cost.wire_bytes, encode, decode);
    graph_.Follow(stream.consumers[i].begin, decode, 0);
  }
}

double Step::BusySeconds(int carrier, int stage) const {
  const auto replicas = static_cast<double>(simulation_.exchange.CarriedBy(carrier).size());
  double seconds = 0;
  for (size_t chunk = stage; chunk < simulation_.chunks.size(); chunk += stages()) {
    const ChunkCost& cost = simulation_.chunks[chunk];
    // Each slice after the first takes the fixed cost of a pass once more, forward once and
    // backward twice.
    seconds += replicas * simulation_.microbatches *
                   (cost.forward_seconds + cost.backward_seconds +
                    3 * (parts_.count() - 1) * cost.pass_seconds) +
               cost.update_seconds;
  }
  return seconds;
}

Makespan Step::Run() {
  Makespan makespan;
  makespan.seconds = graph_.Run(simulation_.cores, simulation_.machines);
  double busy = 0;
  for (int carrier = 0; carrier < carriers(); ++carrier) {
    for (int stage = 0; stage < stages(); ++stage) {
      busy += makespan.busy_seconds.emplace_back(BusySeconds(carrier, stage));
    }
  }
  const int machines = carriers() * stages();
  if (makespan.seconds > 0) makespan.bubble_ratio = 1 - busy / (machines * makespan.seconds);
  for (const std::vector<Exchanged>& stage : exchanged_) {
    ExchangeSpan& span = makespan.exchanges.emplace_back();
    span.begin_seconds = makespan.seconds;
    for (const Exchanged& tasks : stage) {
      span.begin_seconds = std::min(span.begin_seconds, graph_.EndOf(tasks.passes));
      span.end_seconds = std::max(span.end_seconds, graph_.EndOf(tasks.last));
    }
  }
  return makespan;
}

}  // namespace

NameTable<Nic> TableOf(Nic) { return {"nic", kNics}; }

Makespan Simulate(const Simulation& simulation) {
  assert(simulation.stages() >= 1 && simulation.microbatches >= 1 && simulation.cores >= 0);
  assert(simulation.machines >= 1);
  assert(simulation.chunks.size() ==
         static_cast<size_t>(simulation.stages()) * simulation.chunks_per_stage);
  assert(simulation.activations.size() == simulation.chunks.size() - 1);
  assert(simulation.gradients.size() == simulation.chunks.size() - 1);
  assert(simulation.exchange.replicas() >= 1);
  assert(simulation.exchange.pieces.empty() ||
         simulation.exchange.pieces.size() == static_cast<size_t>(simulation.stages()));
  return Step(simulation).Run();
}

}  // namespace thinwire
