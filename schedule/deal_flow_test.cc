// Checks that steps of replicas end within their queues, whichever machines carry them, in whatever
// order machines run and messages arrive: passes, the exchange of a stage's machines and the
// agreement on the update.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/settings_testing.h"
#include "schedule/schedule.h"

namespace thinwire {
namespace {

constexpr int kMicrobatches = 3, kPieces = 3, kSteps = 3;

struct Case {
  ScheduleKind kind;
  int stages;
  std::vector<int> deal;  // replicas of each carrier
  bool gathers = false;   // contributions go to all carriers, and no sums
  bool agrees = false;    // an update waits until all carriers can do theirs

  int carriers() const { return static_cast<int>(deal.size()); }
  int replicas() const { return std::accumulate(deal.begin(), deal.end(), 0); }
  int CarrierOf(int replica) const {
    int carrier = 0;
    for (int end = deal[0]; replica >= end; end += deal[carrier]) ++carrier;
    return carrier;
  }
};

// Messages from one machine to another, which arrive in the order in which they were sent and are
// taken by name.
struct Link {
  int capacity = 0;
  std::vector<int> sent;
  size_t arrived = 0;
  int waiting = 0;  // sent and not taken
};

// Step of a machine, which waits for messages and then sends some.
struct Task {
  std::vector<int> takes, sends;
};

// Machines in which the test picks every event: a machine does its next task, or a message arrives.
class Machines {
 public:
  explicit Machines(const Case& of) : case_(of), tasks_(of.carriers() * of.stages) {
    for (int carrier = 0; carrier < of.carriers(); ++carrier) {
      for (int stage = 0; stage < of.stages; ++stage) {
        for (int step = 0; step < kSteps; ++step) AddStep(carrier, stage, step);
      }
    }
    done_.assign(tasks_.size(), 0);
    is_there_.assign(links_of_.size(), false);
  }

  // Events are numbers of machines, and behind them of links.
  std::vector<size_t> PossibleEvents() const {
    std::vector<size_t> events;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (CanDo(i)) events.push_back(i);
    }
    for (size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].arrived < links_[i].sent.size()) events.push_back(tasks_.size() + i);
    }
    return events;
  }
  bool IsMachine(size_t event) const { return event < tasks_.size(); }

  void Do(size_t event) {
    if (!IsMachine(event)) {
      Link& link = links_[event - tasks_.size()];
      is_there_[link.sent[link.arrived++]] = true;
      return;
    }
    const Task& task = tasks_[event][done_[event]++];
    for (const int message : task.takes) --links_[links_of_[message]].waiting;
    for (const int message : task.sends) {
      Link& link = links_[links_of_[message]];
      link.sent.push_back(message);
      EXPECT_LE(++link.waiting, link.capacity);
    }
  }

  bool IsDone() const {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (done_[i] < tasks_[i].size()) return false;
    }
    return true;
  }

 private:
  enum Kind { kActivation, kGradient, kContribution, kSum, kForth, kReady, kBack };
  // Names of a message: its kind, sender and receiver, and what it is of.
  using Name = std::tuple<Kind, int, int, int, int, int>;

  int MachineOf(int carrier, int stage) const { return carrier * case_.stages + stage; }

  // Returns the number of a message, whose sender and receiver both ask for it. Passes and
  // agreements have other links than exchanges.
  int Message(Kind kind, int from, int to, int step, int first, int second) {
    const auto known = numbers_.emplace(Name(kind, from, to, step, first, second),
                                        static_cast<int>(numbers_.size()));
    if (!known.second) return known.first->second;
    const bool is_exchange = kind == kContribution || kind == kSum || kind == kReady;
    const auto link = link_numbers_.emplace(std::make_tuple(from, to, is_exchange ? kSum : kind),
                                            static_cast<int>(links_.size()));
    if (link.second) {
      const int boundary = std::min(from, to) % case_.stages;
      links_.push_back({is_exchange
                            ? 2 * MessagesOfStep()
                            : QueueCapacity(case_.kind, boundary, case_.stages, kMicrobatches),
                        {}});
    }
    links_of_.push_back(link.first->second);
    return known.first->second;
  }

  // Returns how many messages of a step a carrier may get from another one, as
  // stage_server/replicas/averager.h counts them.
  int MessagesOfStep() const { return kPieces * (case_.replicas() + 1) + 1; }

  bool CanDo(size_t machine) const {
    if (done_[machine] == tasks_[machine].size()) return false;
    const std::vector<int>& takes = tasks_[machine][done_[machine]].takes;
    return std::all_of(takes.begin(), takes.end(), [&](int message) { return is_there_[message]; });
  }

  void AddStep(int carrier, int stage, int step) {
    for (int replica = 0; replica < case_.replicas(); ++replica) {
      if (case_.CarrierOf(replica) != carrier) continue;
      AddPasses(carrier, stage, step, replica);
      AddContribution(carrier, stage, step, replica);
    }
    AddSums(carrier, stage, step);
    if (case_.agrees) AddAgreement(carrier, stage, step);
  }

  void AddPasses(int carrier, int stage, int step, int replica) {
    const int here = MachineOf(carrier, stage);
    const bool is_first = stage == 0, is_last = stage + 1 == case_.stages;
    for (const Action& action : StageActions(case_.kind, stage, case_.stages, kMicrobatches)) {
      Task task;
      const int unit = action.microbatch;
      const auto activation = [&](int from) {
        return Message(kActivation, from, from + 1, step, replica, unit);
      };
      const auto gradient = [&](int from) {
        return Message(kGradient, from, from - 1, step, replica, unit);
      };
      if (action.kind == Action::Kind::kForward) {
        if (!is_first) task.takes.push_back(activation(here - 1));
        if (!is_last) task.sends.push_back(activation(here));
      } else if (action.kind != Action::Kind::kBackwardWeight) {
        if (!is_last) task.takes.push_back(gradient(here + 1));
        if (!is_first) task.sends.push_back(gradient(here));
      }
      tasks_[here].push_back(task);
    }
  }

  // Returns the carrier that adds up a piece.
  int OwnerOf(int piece) const { return case_.CarrierOf(piece % case_.replicas()); }
  bool AddsUp(int carrier, int piece) const { return case_.gathers || OwnerOf(piece) == carrier; }

  void AddContribution(int carrier, int stage, int step, int replica) {
    Task task;
    for (int piece = 0; piece < kPieces; ++piece) {
      for (int other = 0; other < case_.carriers(); ++other) {
        if (other == carrier || !AddsUp(other, piece)) continue;
        task.sends.push_back(Message(kContribution, MachineOf(carrier, stage),
                                     MachineOf(other, stage), step, piece, replica));
      }
    }
    tasks_[MachineOf(carrier, stage)].push_back(task);
  }

  // Adds what comes from others in ascending order of replicas, tells the sums, and takes the
  // others' sums.
  void AddSums(int carrier, int stage, int step) {
    const int here = MachineOf(carrier, stage);
    std::vector<Task>& tasks = tasks_[here];
    for (int piece = 0; piece < kPieces; ++piece) {
      if (!AddsUp(carrier, piece)) continue;
      for (int replica = 0; replica < case_.replicas(); ++replica) {
        const int from = case_.CarrierOf(replica);
        if (from == carrier) continue;
        tasks.push_back(
            {{Message(kContribution, MachineOf(from, stage), here, step, piece, replica)}, {}});
      }
      if (!case_.gathers) tasks.push_back({{}, ToOthers(kSum, carrier, stage, step, piece)});
    }
    for (int piece = 0; piece < kPieces; ++piece) {
      if (AddsUp(carrier, piece)) continue;
      tasks.push_back(
          {{Message(kSum, MachineOf(OwnerOf(piece), stage), here, step, piece, 0)}, {}});
    }
  }

  std::vector<int> ToOthers(Kind kind, int carrier, int stage, int step, int piece) {
    std::vector<int> messages;
    for (int other = 0; other < case_.carriers(); ++other) {
      if (other == carrier) continue;
      messages.push_back(
          Message(kind, MachineOf(carrier, stage), MachineOf(other, stage), step, piece, 0));
    }
    return messages;
  }

  // Adds the wave along a pipeline, the word of all last stages, and the way back.
  void AddAgreement(int carrier, int stage, int step) {
    const int here = MachineOf(carrier, stage);
    const bool is_first = stage == 0, is_last = stage + 1 == case_.stages;
    std::vector<Task>& tasks = tasks_[here];
    Task forth, back;
    if (!is_first) forth.takes.push_back(Message(kForth, here - 1, here, step, 0, 0));
    if (!is_last) forth.sends.push_back(Message(kForth, here, here + 1, step, 0, 0));
    if (is_last) forth.sends = ToOthers(kReady, carrier, stage, step, 0);
    tasks.push_back(forth);
    if (!is_last) back.takes.push_back(Message(kBack, here + 1, here, step, 0, 0));
    for (int other = 0; is_last && other < case_.carriers(); ++other) {
      if (other == carrier) continue;
      back.takes.push_back(Message(kReady, MachineOf(other, stage), here, step, 0, 0));
    }
    if (!is_first) back.sends.push_back(Message(kBack, here, here - 1, step, 0, 0));
    tasks.push_back(back);
  }

  const Case case_;
  std::vector<std::vector<Task>> tasks_;  // by machine
  std::map<Name, int> numbers_;           // of messages
  std::map<std::tuple<int, int, Kind>, int> link_numbers_;
  std::vector<Link> links_;
  std::vector<int> links_of_;   // by message
  std::vector<size_t> done_;    // tasks, by machine
  std::vector<bool> is_there_;  // by message
};

using Adversary = std::function<size_t(const Machines&, const std::vector<size_t>&)>;

void Finish(const Case& of, const Adversary& pick) {
  Machines machines(of);
  for (auto events = machines.PossibleEvents(); !events.empty();
       events = machines.PossibleEvents()) {
    machines.Do(pick(machines, events));
  }
  EXPECT_TRUE(machines.IsDone()) << "deadlock";
}

// Calls `check` with each way to deal out replicas to so many carriers, each of which has one.
void ForEveryDeal(int replicas, int carriers, std::vector<int>* deal,
                  const std::function<void()>& check) {
  if (carriers == 1) {
    deal->push_back(replicas);
    check();
    deal->pop_back();
    return;
  }
  for (int here = 1; here + carriers - 1 <= replicas; ++here) {
    deal->push_back(here);
    ForEveryDeal(replicas - here, carriers - 1, deal, check);
    deal->pop_back();
  }
}

void ForEveryCase(const std::function<void(const Case&)>& check) {
  for (const ScheduleKind kind : AllOf<ScheduleKind>()) {
    if (Interleaves(kind) || Slices(kind)) continue;  // with one part each they are 1F1B
    for (int stages = 1; stages <= 4; ++stages) {
      for (int replicas = 1; replicas <= 8; ++replicas) {
        for (int carriers = 1; carriers <= std::min(4, replicas); ++carriers) {
          std::vector<int> deal;
          ForEveryDeal(replicas, carriers, &deal, [&] {
            SCOPED_TRACE(testing::Message() << Name(kind) << ", stages " << stages << ", deal "
                                            << testing::PrintToString(deal));
            for (const bool gathers : {false, true}) {
              for (const bool agrees : {false, true}) check({kind, stages, deal, gathers, agrees});
            }
          });
        }
      }
    }
  }
}

TEST(DealFlowTest, EveryDealEndsWithinItsQueuesUnderRandomOrders) {
  RandomStream random(RandomKey(1, "deals"));
  ForEveryCase([&random](const Case& of) {
    if (kSanitized && of.replicas() > 5) return;
    Finish(of, [&random](const Machines&, const std::vector<size_t>& events) {
      return events[random.Below(static_cast<uint32_t>(events.size()))];
    });
  });
}

TEST(DealFlowTest, EveryDealEndsWithinItsQueuesWhenOneMachineWaitsForAllOthers) {
  ForEveryCase([](const Case& of) {
    if (of.replicas() > (kSanitized ? 3 : 5)) return;
    for (size_t slow = 0; slow < static_cast<size_t>(of.carriers() * of.stages); ++slow) {
      Finish(of, [slow](const Machines&, const std::vector<size_t>& events) {
        return events.front() == slow ? events.back() : events.front();
      });
    }
  });
}

TEST(DealFlowTest, EveryDealEndsWithinItsQueuesWhenMessagesLinger) {
  ForEveryCase([](const Case& of) {
    if (of.replicas() > (kSanitized ? 3 : 6)) return;
    // The last machine that can do anything goes first, and of links the last one.
    Finish(of, [](const Machines& machines, const std::vector<size_t>& events) {
      const auto machine = std::find_if(events.rbegin(), events.rend(),
                                        [&](size_t event) { return machines.IsMachine(event); });
      return machine == events.rend() ? events.back() : *machine;
    });
  });
}

}  // namespace
}  // namespace thinwire
