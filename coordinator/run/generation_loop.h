// The generations of a run, one after another: what a loss ends, the next one continues.
#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/fleet/failure.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "coordinator/run/run.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Counts restarts within a sliding window.
class RestartBudget {
 public:
  // Takes the limit of a resolved experiment.
  explicit RestartBudget(const RestartsConfig& config)
      : max_(config.max()), window_(absl::Seconds(config.window())) {}

  bool allows_any() const { return max_ > 0; }

  // Returns whether a restart is allowed now: at most `max` within `window`. An allowed one is
  // counted.
  bool Allow(SteadyTime now) {
    while (!times_.empty() && now - times_.front() > window_) times_.pop_front();
    if (times_.size() >= max_) return false;
    times_.push_back(now);
    return true;
  }

 private:
  const size_t max_;
  const absl::Duration window_;
  std::deque<SteadyTime> times_;
};

// State that a generation begins with.
struct GenerationStart {
  Fleet* fleet = nullptr;
  const FoundCheckpoint* from = nullptr;  // checkpoint that it continues from; null: none
  std::optional<SteadyTime> lost_at;      // time of the loss that it makes good, if any
  // Set where the stages keep their state: that loss, of which the generation tells once it knows
  // where it goes on.
  const RunEvent* loss = nullptr;
  bool keeps_state = false;  // True: stages keep their state over the end of the generation.
};

// Decides after each generation whether the run goes on, from which checkpoint and on which stages.
// What a generation does in between is not its business.
class GenerationLoop {
 public:
  // Trains until the run ends or is interrupted, or until a stage is lost.
  using RunGeneration = std::function<absl::Status(const GenerationStart&)>;

  // Returns the last step that was done. Null where stages keep no state over a loss.
  using KeptStep = std::function<uint64_t()>;

  // Takes the checkpoints and the fleets from `options`. All arguments outlive this object.
  GenerationLoop(const RunOptions& options, const RestartsConfig& restarts, KeptStep kept_step,
                 RunGeneration run, RunObserver* observer, Summary* summary)
      : options_(options),
        restarts_(restarts),
        kept_step_(std::move(kept_step)),
        run_(std::move(run)),
        observer_(*observer),
        summary_(*summary) {}

  // Runs generation after generation, the first on the stages of `fleet`. Returns OK after the last
  // epoch; otherwise the error of the generation after which the run does not go on, or what kept
  // the next one from its begin.
  absl::Status Run(Fleet* fleet);

 private:
  // Returns the loss that ended the generation on `fleet`, if the run goes on after it.
  std::optional<Failure> LossToMakeGood(Fleet* fleet);
  // Finds the last checkpoint, and the fleet that continues from it.
  absl::StatusOr<Fleet*> GoOn(const Failure& loss, const Fleet* fleet);
  absl::Status Tell(const RunEvent& event);
  // Returns whether the run may be continued once more. One that has come further by what stages
  // keep since the last loss has lost nothing, and may always.
  bool MayGoOn();

  const RunOptions& options_;
  RestartBudget restarts_;
  const KeptStep kept_step_;
  uint64_t step_of_loss_ = 0;  // of the last one
  RunEvent loss_;              // it itself, where stages keep their state
  int events_at_loss_ = 0;     // number of events then, to which it is added
  const RunGeneration run_;
  RunObserver& observer_;
  Summary& summary_;
  // The checkpoint that the next generation continues from.
  std::optional<FoundCheckpoint> from_;
  std::optional<SteadyTime> lost_at_;  // time of the last loss
};

}  // namespace thinwire
