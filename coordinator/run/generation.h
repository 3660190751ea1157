// One generation of a run: the epochs that one fleet trains, from a checkpoint or from the begin.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/checkpointer.h"
#include "coordinator/run/followers.h"
#include "coordinator/run/generation_loop.h"
#include "coordinator/run/observer.h"
#include "coordinator/run/placed_stages.h"
#include "coordinator/run/run.h"
#include "coordinator/run/training_reports.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Objects that the generations of a run have in common.
struct CommonToGenerations {
  const Experiment& experiment;  // resolved
  const RunOptions& options;
  TrainingReports& reports;
  RunObserver& observer;
  Summary& summary;
  std::optional<CheckpointBase>& base;  // what checkpoints leave out
};

// Places the stages, gives them their state, trains, evaluates and writes checkpoints. It knows
// nothing of other generations but the checkpoint that it begins with.
class Generation {
 public:
  // Makes a generation. All that the arguments refer to outlives it.
  Generation(const CommonToGenerations& run, const GenerationStart& start)
      : experiment_(run.experiment),
        options_(run.options),
        reports_(run.reports),
        observer_(run.observer),
        summary_(run.summary),
        base_(run.base),
        fleet_(*start.fleet),
        start_(start) {}

  // Returns OK after the last epoch, otherwise the first error. No checkpoint is being written when
  // it returns; after an interruption the last one that could be held has been.
  absl::Status Run();

 private:
  absl::Status RunEpochs();
  absl::Status Begin();
  absl::Status GoOnAfter(uint64_t step);
  absl::Status HoldLostCheckpoint();
  absl::Status TellLoss(const char* type, uint64_t step);
  absl::Status BeginAnew();
  absl::Status BeginWithInitial();
  absl::Status RestoreFrom(const FoundCheckpoint& from);
  absl::Status LeaveCheckpointsAfter(const FoundCheckpoint& from);
  absl::Status CheckData(const Experiment& then, const FoundCheckpoint& from);
  absl::Status SetProgress(const RunProgress& progress, uint64_t step);
  void MakeCheckpointer();
  absl::Status RunEpoch(uint32_t epoch);
  absl::Status EvaluateStep(uint32_t epoch);
  absl::Status TrainPart(uint32_t epoch);
  absl::Status TrainSteps(uint32_t epoch, uint64_t first, uint64_t last);
  // Begin and end the work of pipelines that follow, if any do.
  void Follow();
  void EndFollowing();
  // Returns the number of steps that these may be behind.
  uint64_t MostBehind() const;
  // Return whether training has ended after a step so that servers go on with what these have kept:
  // all of these, or those of other pipelines.
  bool AllGoOn() const;
  bool OthersGoOn() const;
  bool WantsCheckpoints() const;
  absl::Status KeepIfBest(const EvaluationRecord& latest, const EpochRecord& before);
  absl::Status StopIfNoBetter(const EpochRecord& latest);
  bool IsCheckpointDue(uint64_t step) const;
  absl::Status HoldCheckpoint(uint32_t epoch);
  uint64_t StepsPerEpoch() const;
  RunPlan Plan() const;

  const Experiment& experiment_;
  const RunOptions& options_;
  TrainingReports& reports_;
  RunObserver& observer_;
  Summary& summary_;
  std::optional<CheckpointBase>& base_;
  Fleet& fleet_;
  const GenerationStart start_;
  PlacedStages placed_;
  std::optional<Checkpointer> checkpointer_;  // not set: none are written
  std::optional<Followers> followers_;        // not set: no pipeline follows
  bool is_stopped_ = false;                   // early_stop has ended the run.
};

}  // namespace thinwire
