// Interprets a schedule: trains an epoch, evaluates, or generates text. Runs on one thread; only
// what says "any thread" is for the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "nn/lr_schedule.h"
#include "proto/stage.pb.h"
#include "stage_server/stage/feed.h"
#include "stage_server/stage/local_stage.h"
#include "stage_server/stage/replica_steps.h"
#include "stage_server/stage/step_gate.h"

namespace thinwire {

class Executor {
 public:
  // Makes an executor. `stage` and `feed` outlive it. `feed` is null at stages that read no data.
  Executor(LocalStage* stage, Feed* feed, const LrScheduleSpec& lr)
      : stage_(stage), feed_(feed), lr_(lr), replicas_(stage) {}

  // While the stage is not connected to its neighbours, every call fails with FailedPrecondition
  // and changes nothing. When an action of a call fails, the links are closed, so that neighbours
  // stop too.

  // Trains the steps that the request names, or else a whole epoch over the training set, until
  // gate() ends training. For steps that the epoch does not have it changes nothing and returns
  // InvalidArgument. Calls `on_step` after every step, on this thread; the report's loss and
  // accuracy are set at the last stage only.
  absl::Status Train(const TrainRequest& request,
                     const std::function<void(const StepReport&)>& on_step);

  // Computes the gradients of one training batch's loss and leaves them in the parameters'
  // `gradient`, as Train has them before its update. Running statistics stay as they were. The
  // report is filled as in Train. The caller must call ClearGradients before it trains on.
  absl::StatusOr<StepReport> Gradients(const GradientsRequest& request);

  // Evaluates the test set and leaves everything as it was. The report is filled at the last stage
  // only.
  absl::StatusOr<EvaluationReport> Evaluate(const EvaluateRequest& request);

  // Runs the next positions of a text. InvalidArgument and FailedPrecondition change nothing; they
  // say what the request has and what the model, or the text so far, wants. OutOfRange if a logit
  // is not finite.
  absl::StatusOr<GenerateResponse> Generate(const GenerateRequest& request);

  // Returns the gate that ends training between two steps. Any thread.
  StepGate& gate() { return gate_; }

  // Makes the current call end with `reason` within one action. Any thread.
  void Stop(const absl::Status& reason);

  // Returns the reason of the first Stop; OK before it. Any thread.
  absl::Status Stopped() const;

  // Leaves out of the next step's seconds what `on_step` of Train has done so far.
  void StepBeginsNow() { step_began_ = SteadyTime::Now(); }

  // Sets last_step() when the state that a run had after `step` was restored.
  void StartAfter(uint64_t step) { Publish(step); }

  // Returns how far training has come, once a step has begun and where all agree on updates; for
  // when no call runs any more.
  const std::optional<StageStanding>& standing() const { return standing_; }
  // Sets it, when the state that the stage had there was restored, whichever stage `standing` is
  // of.
  void StandAt(const StageStanding& standing);
  // Makes the stage as it is after `wanted.step`: where it stands, or by the update that it is
  // ready for. FailedPrecondition if it stands elsewhere.
  absl::Status Reach(const StageStanding& wanted);

  // Return the activity and the number of the last finished training step, as of its end. Any
  // thread.
  ActivitySeconds activity() const;
  uint64_t last_step() const;

 private:
  // Runs one step, which `of_epoch` names. Fills in the report except for its seconds.
  absl::Status TrainStep(const Work& of_epoch, const SampleRange& batch, int64_t steps_per_epoch,
                         StepReport* report);
  // Does so where all have to agree on the update.
  absl::Status TrainAgreed(const Work& work, const SampleRange& batch, StepReport* report);
  absl::Status UpdateReady(double squares);
  absl::Status DropReady();
  // Ends the steps of a Train: all that was sent has left, and the stage has the shared parameters.
  absl::Status EndSteps();
  // Tells the feed which samples will be wanted. Each element of `passes` holds the ranges that go
  // through the chunks together, such as the microbatches of a replica.
  void Announce(const Work& work, const std::vector<std::vector<SampleRange>>& passes);
  // Runs forward and backward of a whole batch.
  absl::Status Accumulate(Work work, const SampleRange& batch, StepReport* report);
  // Returns the number of labels, those that are ignored left out, over which a replica's loss is a
  // mean: those of its own samples if it trains locally, otherwise of the whole batch. 0 at other
  // stages than the last.
  absl::StatusOr<int64_t> LossLabels(const Work& work, const SampleRange& batch);
  // Runs forward and backward of the microbatches of one replica, and sums what is tied.
  absl::StatusOr<LossSums> AccumulateReplica(Work work, const SampleRange& batch);
  ReplicaSteps::Accumulate AccumulateOf(const SampleRange& batch);
  // Does the same starting from zero gradients, and restores running statistics afterwards.
  absl::Status AccumulateOnly(const Work& work, const SampleRange& batch, StepReport* report);
  // Ends what is under way if the stage takes much more memory than it may.
  absl::Status MeasureMemory();
  absl::StatusOr<LossSums> ForwardOne(Work work, const SampleRange& batch, const SampleRange& part);
  // Runs forward, in order, over the first `samples` samples of the set that belongs to work.phase.
  // Batches follow each other through the chunks as microbatches do in training. `after_batch` is
  // called with the chunk that a batch has passed.
  absl::StatusOr<LossSums> Pass(Work work, int64_t samples,
                                const std::function<absl::Status(int chunk)>& after_batch);
  absl::StatusOr<LossSums> RecalibratedPass(Work work, const EvaluateRequest& request);
  absl::Status Failed(const absl::Status& status);
  void Publish(uint64_t step);

  LocalStage* const stage_;
  Feed* const feed_;
  const LrScheduleSpec lr_;
  StepGate gate_;
  // A step whose gradients have come.
  struct ReadyStep {
    Work work;
    double learning_rate = 0;
  };
  std::optional<ReadyStep> ready_;
  std::optional<StageStanding> standing_;
  SteadyTime step_began_;  // this and replicas_: of the executor's thread alone
  ReplicaSteps replicas_;

  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  absl::Status stop_ ABSL_GUARDED_BY(mutex_);
  ActivitySeconds published_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
