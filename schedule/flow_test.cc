// Checks that no schedule deadlocks or overflows a queue of QueueCapacity, in whatever order stages
// run and messages arrive.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/settings_testing.h"
#include "schedule/schedule.h"

namespace thinwire {
namespace {

// Messages of one boundary and direction, in order: the numbers sent, arrived, and consumed by the
// action that needs them.
struct Queue {
  int sent = 0, arrived = 0, consumed = 0;
  int most = 0;  // most that were sent and not consumed at any time
  void Send() { most = std::max(most, ++sent - consumed); }
};

struct Size {
  ScheduleKind kind;
  int stages, microbatches, chunks, slices;

  int boundaries() const { return stages * chunks - 1; }
  int Capacity(int boundary) const {
    return QueueCapacity(kind, boundary, stages, microbatches, chunks, slices);
  }
};

// A pipeline in which the test picks every event: a stage runs its next action, or a message
// arrives.
class Pipeline {
 public:
  Pipeline(const Size& size)
      : position_(size.stages, 0), activations_(size.boundaries()), gradients_(size.boundaries()) {
    for (int s = 0; s < size.stages; ++s) {
      actions_.push_back(
          StageActions(size.kind, s, size.stages, size.microbatches, size.chunks, size.slices));
    }
  }

  struct Event {
    enum class Kind { kAction, kActivationArrives, kGradientArrives } kind;
    int at;  // the stage that runs, or the boundary
  };

  // Returns what may happen next, valid until the next call.
  const std::vector<Event>& PossibleEvents() {
    events_.clear();
    for (int s = 0; s < stages(); ++s) {
      if (CanRun(s)) events_.push_back({Event::Kind::kAction, s});
    }
    for (int b = 0; b < boundaries(); ++b) {
      if (activations_[b].arrived < activations_[b].sent) {
        events_.push_back({Event::Kind::kActivationArrives, b});
      }
      if (gradients_[b].arrived < gradients_[b].sent) {
        events_.push_back({Event::Kind::kGradientArrives, b});
      }
    }
    return events_;
  }

  void Do(const Event& event) {
    if (event.kind == Event::Kind::kActivationArrives) {
      ++activations_[event.at].arrived;
    } else if (event.kind == Event::Kind::kGradientArrives) {
      ++gradients_[event.at].arrived;
    } else {
      Run(event.at);
    }
  }

  bool Done() const {
    for (int s = 0; s < stages(); ++s) {
      if (position_[s] < actions_[s].size()) return false;
    }
    return true;
  }

  int stages() const { return static_cast<int>(actions_.size()); }
  int boundaries() const { return static_cast<int>(activations_.size()); }
  const std::vector<size_t>& position() const { return position_; }
  const Queue& activations(int boundary) const { return activations_[boundary]; }
  const Queue& gradients(int boundary) const { return gradients_[boundary]; }

 private:
  // Returns which chunk of the model, in its order, the next action of stage s belongs to.
  int ChunkOf(int s) const { return actions_[s][position_[s]].chunk * stages() + s; }

  // Returns the queue that gives the next action of stage s its input, or null.
  Queue* Input(int s) {
    const Action::Kind kind = actions_[s][position_[s]].kind;
    const int chunk = ChunkOf(s);
    if (kind == Action::Kind::kBackwardWeight) return nullptr;
    if (kind == Action::Kind::kForward) return chunk == 0 ? nullptr : &activations_[chunk - 1];
    return chunk == boundaries() ? nullptr : &gradients_[chunk];
  }

  bool CanRun(int s) {
    if (position_[s] == actions_[s].size()) return false;
    const Queue* input = Input(s);
    return input == nullptr || input->arrived > input->consumed;
  }

  void Run(int s) {
    const Action::Kind kind = actions_[s][position_[s]].kind;
    const int chunk = ChunkOf(s);
    if (Queue* input = Input(s)) ++input->consumed;
    ++position_[s];
    if (kind == Action::Kind::kBackwardWeight) return;
    if (kind == Action::Kind::kForward) {
      if (chunk < boundaries()) activations_[chunk].Send();
    } else if (chunk > 0) {
      gradients_[chunk - 1].Send();
    }
  }

  std::vector<std::vector<Action>> actions_;
  std::vector<size_t> position_;
  std::vector<Queue> activations_, gradients_;
  std::vector<Event> events_;
};

using Event = Pipeline::Event;
using Adversary = std::function<Event(const std::vector<Event>&)>;

// Returns the most chunks or slices to test.
int MostParts(ScheduleKind kind) { return Interleaves(kind) ? 4 : Slices(kind) ? 2 : 1; }

void ForEverySize(int most_stages, int most_microbatches,
                  const std::function<void(const Size& size)>& check) {
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
    for (int parts = 1; parts <= MostParts(kind); ++parts) {
      const int chunks = Interleaves(kind) ? parts : 1, slices = Slices(kind) ? parts : 1;
      for (int stages = 1; stages <= most_stages; ++stages) {
        for (int microbatches = 1; microbatches <= most_microbatches; ++microbatches) {
          SCOPED_TRACE(testing::Message()
                       << Name(kind) << ", stages " << stages << ", microbatches " << microbatches
                       << ", chunks " << chunks << ", slices " << slices);
          check({kind, stages, microbatches, chunks, slices});
        }
      }
    }
  }
}

void ForEverySize(const std::function<void(const Size& size)>& check) {
  ForEverySize(/*most_stages=*/8, /*most_microbatches=*/16, check);
}

// Runs a step to its end with `pick`. Every queue must stay within its capacity.
Pipeline Finish(const Size& size, const Adversary& pick) {
  Pipeline pipeline(size);
  while (true) {
    const std::vector<Event>& events = pipeline.PossibleEvents();
    if (events.empty()) break;
    pipeline.Do(pick(events));
  }
  EXPECT_TRUE(pipeline.Done()) << "deadlock";
  for (int b = 0; b < size.boundaries(); ++b) {
    EXPECT_LE(pipeline.activations(b).most, size.Capacity(b)) << "activations of boundary " << b;
    EXPECT_LE(pipeline.gradients(b).most, size.Capacity(b)) << "gradients of boundary " << b;
  }
  return pipeline;
}

// Lets `stage` run only when nothing else in the pipeline can happen.
Adversary Starve(int stage) {
  return [stage](const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (event.kind != Event::Kind::kAction || event.at != stage) return event;
    }
    return events.front();
  };
}

TEST(FlowTest, EveryScheduleEndsWithinItsQueuesUnderRandomOrders) {
  ForEverySize([](const Size& size) {
    for (uint64_t seed = 0; seed < (kSanitized ? 4 : 20); ++seed) {
      RandomStream random(RandomKey(seed, "flow"));
      Finish(size, [&random](const std::vector<Event>& events) {
        return events[random.Below(static_cast<uint32_t>(events.size()))];
      });
    }
  });
}

TEST(FlowTest, EveryScheduleEndsWithinItsQueuesWhenOneEndAlwaysGoesFirst) {
  ForEverySize([](const Size& size) {
    Finish(size, [](const std::vector<Event>& e) { return e.front(); });
    Finish(size, [](const std::vector<Event>& e) { return e.back(); });
  });
}

TEST(FlowTest, EveryScheduleEndsWithinItsQueuesWhenMessagesLinger) {
  ForEverySize([](const Size& size) {
    // Any stage that can run goes first: either the most upstream or the most downstream of them.
    for (bool upstream : {true, false}) {
      Finish(size, [upstream](const std::vector<Event>& events) {
        std::vector<Event> actions;
        for (const Event& event : events) {
          if (event.kind == Event::Kind::kAction) actions.push_back(event);
        }
        if (actions.empty()) return events.front();
        return upstream ? actions.front() : actions.back();
      });
    }
  });
}

TEST(FlowTest, AStarvedStageFillsItsQueuesToTheirCapacityAndNoFurther) {
  ForEverySize([](const Size& size) {
    for (int stage = 0; stage < size.stages; ++stage) {
      const Pipeline pipeline = Finish(size, Starve(stage));
      if (size.chunks > 1) continue;  // stages that take turns wait for each other sooner
      if (stage > 0) {
        EXPECT_EQ(pipeline.activations(stage - 1).most, size.Capacity(stage - 1));
      }
      if (stage + 1 < size.stages) {
        EXPECT_EQ(pipeline.gradients(stage).most, size.Capacity(stage));
      }
    }
  });
}

// Arrival only delays, so here it is instant, and the state is each stage's position.
void ExploreAllOrders(const Size& size) {
  std::vector<int> capacities;
  for (int b = 0; b < size.boundaries(); ++b) capacities.push_back(size.Capacity(b));
  std::set<std::vector<size_t>> seen;
  std::vector<Pipeline> open = {Pipeline(size)};
  while (!open.empty()) {
    Pipeline pipeline = open.back();
    open.pop_back();
    if (!seen.insert(pipeline.position()).second) continue;
    const std::vector<Event> events = pipeline.PossibleEvents();
    ASSERT_EQ(events.empty(), pipeline.Done()) << "deadlock";
    for (const Event& event : events) {
      Pipeline next = pipeline;
      next.Do(event);
      for (int b = 0; b < size.boundaries(); ++b) {
        const Queue& down = next.activations(b);
        const Queue& up = next.gradients(b);
        ASSERT_LE(down.sent - down.consumed, capacities[b]);
        ASSERT_LE(up.sent - up.consumed, capacities[b]);
        while (next.activations(b).arrived < down.sent) {
          next.Do({Event::Kind::kActivationArrives, b});
        }
        while (next.gradients(b).arrived < up.sent) next.Do({Event::Kind::kGradientArrives, b});
      }
      open.push_back(std::move(next));
    }
  }
}

TEST(FlowTest, NoReachableStateOfSmallPipelinesDeadlocksOrOverflows) {
  ForEverySize(/*most_stages=*/4, /*most_microbatches=*/5, [](const Size& size) {
    if (size.microbatches * size.slices <= 6) ExploreAllOrders(size);
  });
}

}  // namespace
}  // namespace thinwire
