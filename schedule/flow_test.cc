// No schedule deadlocks or overflows a queue of QueueCapacity, in whatever order stages get to
// run and messages to arrive.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "base/random.h"
#include "schedule/schedule.h"

namespace thinwire {
namespace {

// Messages of one boundary and direction, in order: how many were sent, have arrived and were
// consumed by the action that needs them.
struct Queue {
  int sent = 0, arrived = 0, consumed = 0;
  int most = 0;  // sent and not consumed, at any time
  void Send() { most = std::max(most, ++sent - consumed); }
};

// A pipeline whose every event (a stage runs its next action, a message arrives) is picked by the
// test.
class Pipeline {
 public:
  Pipeline(ScheduleKind kind, int stages, int microbatches)
      : position_(stages, 0), activations_(stages - 1), gradients_(stages - 1) {
    for (int s = 0; s < stages; ++s) {
      actions_.push_back(StageActions(kind, s, stages, microbatches));
    }
  }

  struct Event {
    enum class Kind { kAction, kActivationArrives, kGradientArrives } kind;
    int at;  // the stage that runs, or the boundary
  };

  std::vector<Event> PossibleEvents() {
    std::vector<Event> events;
    for (int s = 0; s < stages(); ++s) {
      if (CanRun(s)) events.push_back({Event::Kind::kAction, s});
    }
    for (int b = 0; b + 1 < stages(); ++b) {
      if (activations_[b].arrived < activations_[b].sent) {
        events.push_back({Event::Kind::kActivationArrives, b});
      }
      if (gradients_[b].arrived < gradients_[b].sent) {
        events.push_back({Event::Kind::kGradientArrives, b});
      }
    }
    return events;
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
  const std::vector<size_t>& position() const { return position_; }
  const Queue& activations(int boundary) const { return activations_[boundary]; }
  const Queue& gradients(int boundary) const { return gradients_[boundary]; }

 private:
  // The queue that the next action of stage s takes its input from, or null.
  Queue* Input(int s) {
    const Action::Kind kind = actions_[s][position_[s]].kind;
    if (kind == Action::Kind::kBackwardWeight) return nullptr;
    if (kind == Action::Kind::kForward) return s == 0 ? nullptr : &activations_[s - 1];
    return s + 1 == stages() ? nullptr : &gradients_[s];
  }

  bool CanRun(int s) {
    if (position_[s] == actions_[s].size()) return false;
    const Queue* input = Input(s);
    return input == nullptr || input->arrived > input->consumed;
  }

  void Run(int s) {
    const Action::Kind kind = actions_[s][position_[s]].kind;
    if (Queue* input = Input(s)) ++input->consumed;
    ++position_[s];
    if (kind == Action::Kind::kBackwardWeight) return;
    if (kind == Action::Kind::kForward) {
      if (s + 1 < stages()) activations_[s].Send();
    } else if (s > 0) {
      gradients_[s - 1].Send();
    }
  }

  std::vector<std::vector<Action>> actions_;
  std::vector<size_t> position_;
  std::vector<Queue> activations_, gradients_;
};

using Event = Pipeline::Event;
using Adversary = std::function<Event(const std::vector<Event>&)>;

void ForEverySize(const std::function<void(ScheduleKind, int stages, int microbatches)>& check) {
  for (ScheduleKind kind : AllSchedules()) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int microbatches = 1; microbatches <= 16; ++microbatches) {
        SCOPED_TRACE(testing::Message()
                     << Name(kind) << ", stages " << stages << ", microbatches " << microbatches);
        check(kind, stages, microbatches);
      }
    }
  }
}

// Runs a step to its end under `pick`; every queue stays within its capacity.
Pipeline Finish(ScheduleKind kind, int stages, int microbatches, const Adversary& pick) {
  Pipeline pipeline(kind, stages, microbatches);
  for (auto events = pipeline.PossibleEvents(); !events.empty();
       events = pipeline.PossibleEvents()) {
    pipeline.Do(pick(events));
  }
  EXPECT_TRUE(pipeline.Done()) << "deadlock";
  for (int b = 0; b + 1 < stages; ++b) {
    const int capacity = QueueCapacity(kind, b, stages, microbatches);
    EXPECT_LE(pipeline.activations(b).most, capacity) << "activations of boundary " << b;
    EXPECT_LE(pipeline.gradients(b).most, capacity) << "gradients of boundary " << b;
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
  ForEverySize([](ScheduleKind kind, int stages, int microbatches) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      RandomStream random(RandomKey(seed, "flow"));
      Finish(kind, stages, microbatches, [&random](const std::vector<Event>& events) {
        return events[random.Below(static_cast<uint32_t>(events.size()))];
      });
    }
  });
}

TEST(FlowTest, EveryScheduleEndsWithinItsQueuesWhenOneEndAlwaysGoesFirst) {
  ForEverySize([](ScheduleKind kind, int stages, int microbatches) {
    Finish(kind, stages, microbatches, [](const std::vector<Event>& e) { return e.front(); });
    Finish(kind, stages, microbatches, [](const std::vector<Event>& e) { return e.back(); });
  });
}

TEST(FlowTest, EveryScheduleEndsWithinItsQueuesWhenMessagesLinger) {
  ForEverySize([](ScheduleKind kind, int stages, int microbatches) {
    // Any stage that can run goes first, the upstream or the downstream one of them.
    for (bool upstream : {true, false}) {
      Finish(kind, stages, microbatches, [upstream](const std::vector<Event>& events) {
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
  ForEverySize([](ScheduleKind kind, int stages, int microbatches) {
    for (int stage = 0; stage < stages; ++stage) {
      const Pipeline pipeline = Finish(kind, stages, microbatches, Starve(stage));
      if (stage > 0) {
        EXPECT_EQ(pipeline.activations(stage - 1).most,
                  QueueCapacity(kind, stage - 1, stages, microbatches));
      }
      if (stage + 1 < stages) {
        EXPECT_EQ(pipeline.gradients(stage).most, QueueCapacity(kind, stage, stages, microbatches));
      }
    }
  });
}

// Arrival only delays, so it is instant here and the state is each stage's position.
void ExploreAllOrders(ScheduleKind kind, int stages, int microbatches) {
  std::set<std::vector<size_t>> seen;
  std::vector<Pipeline> open = {Pipeline(kind, stages, microbatches)};
  while (!open.empty()) {
    Pipeline pipeline = open.back();
    open.pop_back();
    if (!seen.insert(pipeline.position()).second) continue;
    const std::vector<Event> events = pipeline.PossibleEvents();
    ASSERT_EQ(events.empty(), pipeline.Done()) << "deadlock";
    for (const Event& event : events) {
      Pipeline next = pipeline;
      next.Do(event);
      for (int b = 0; b + 1 < stages; ++b) {
        const int capacity = QueueCapacity(kind, b, stages, microbatches);
        const Queue& down = next.activations(b);
        const Queue& up = next.gradients(b);
        ASSERT_LE(down.sent - down.consumed, capacity);
        ASSERT_LE(up.sent - up.consumed, capacity);
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
  for (ScheduleKind kind : AllSchedules()) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (int microbatches = 1; microbatches <= 5; ++microbatches) {
        SCOPED_TRACE(testing::Message()
                     << Name(kind) << ", stages " << stages << ", microbatches " << microbatches);
        ExploreAllOrders(kind, stages, microbatches);
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
