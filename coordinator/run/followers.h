// Pipelines that follow a run: they fetch their state and make the updates of the others, which
// train meanwhile and wait for none of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "proto/stage.pb.h"

namespace thinwire {

class Followers {
 public:
  // Where all servers stand, and what has yet to be fetched for that (PlacedStages::sources).
  struct Start {
    uint64_t step = 0;
    std::vector<int> sources;
    // Number of steps that they may be behind, as what they are sent waits in memory.
    uint64_t most_behind = 0;
  };
  // Returns the last step that the run has done.
  using StepOfRun = std::function<uint64_t()>;
  // Takes what a server reports.
  using Take = std::function<absl::Status(int server, const StageEvent& event)>;

  // Lets the servers of `fleet` that follow begin, from then on apart from its calls. All arguments
  // outlive this object.
  Followers(Fleet* fleet, Start start, const RunPlan& plan, StepOfRun step_of_run, Take take);
  // Ends what they do.
  ~Followers();

  // Makes training end after a step if they are too far behind it; to be called after each.
  void Check(uint64_t step);

  // Waits until all have made the update of `step`, after which training has ended. Returns whether
  // they have: not if one has failed, or the run is to end.
  bool Await(uint64_t step);

 private:
  void Follow(StageClient* stage);
  absl::Status Train(StageClient* stage);
  void HasDone(int carrier, uint64_t step);
  // Returns the first step that not all of them have done.
  uint64_t FirstMissing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndAfterStep(const char* why);

  Fleet& fleet_;
  const Start start_;
  const RunPlan plan_;
  const StepOfRun step_of_run_;
  const Take take_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, uint64_t> done_ ABSL_GUARDED_BY(mutex_);  // last step of each carrier
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;          // ended here, or one has failed
  std::vector<std::thread> threads_;
};

}  // namespace thinwire
