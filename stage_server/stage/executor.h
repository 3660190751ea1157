// Interprets a schedule: one epoch of training, one evaluation. Runs on one thread;
// Stop is for the others.
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
#include "nn/lr_schedule.h"
#include "proto/stage.pb.h"
#include "stage_server/stage/feed.h"
#include "stage_server/stage/local_stage.h"
#include "stage_server/stage/step_gate.h"

namespace thinwire {

class Executor {
 public:
  // Both outlive the executor. `feed` is null at stages that read no data.
  Executor(LocalStage* stage, Feed* feed, const LrScheduleSpec& lr)
      : stage_(stage), feed_(feed), lr_(lr) {}

  // Every call fails with FailedPrecondition, and changes nothing, while the stage is not connected
  // to its neighbours. After any other error the links are closed, so that neighbours stop too.

  // Trains an epoch over the training set, or those of its steps that the request names, until
  // gate() ends it. InvalidArgument, which changes nothing, for steps that the epoch does not have.
  // `on_step` is called after every step, on this thread; its loss and accuracy are set at the last
  // stage only.
  absl::Status Train(const TrainRequest& request,
                     const std::function<void(const StepReport&)>& on_step);

  // Leaves the gradients of one training batch's loss in the parameters' `gradient`, as Train would
  // have them before its update; running statistics stay as they were. The report is filled as in
  // Train. ClearGradients is the caller's duty before whatever trains next.
  absl::StatusOr<StepReport> Gradients(const GradientsRequest& request);

  // Runs the test set and leaves everything as it was. The report is filled at the last stage only.
  absl::StatusOr<EvaluationReport> Evaluate(const EvaluateRequest& request);

  // Runs the next positions of a text. InvalidArgument and FailedPrecondition, which change
  // nothing, say what the request has and what the model, or the text so far, wants.
  absl::StatusOr<GenerateResponse> Generate(const GenerateRequest& request);

  // Ends training between two steps. Any thread.
  StepGate& gate() { return gate_; }

  // The call under way ends with `reason` within one action. Any thread.
  void Stop(const absl::Status& reason);

  // The reason of the first Stop; OK before it. Any thread.
  absl::Status Stopped() const;

  // The stage's state is the one that a run had after that step.
  void StartAfter(uint64_t step) { Publish(step); }

  // Any thread.
  ActivitySeconds activity() const;
  uint64_t last_step() const;

 private:
  // One step: `of_epoch` says which. Fills in the report, but for its seconds.
  absl::Status TrainStep(const Work& of_epoch, const SampleRange& batch, int64_t steps_per_epoch,
                         StepReport* report);
  // What the feed will be asked for: each element is what goes through the chunks together, as the
  // parts of a batch do.
  void Announce(const Work& work, const std::vector<std::vector<SampleRange>>& passes);
  // Forward and backward of a whole batch.
  absl::Status Accumulate(Work work, const SampleRange& batch, StepReport* report);
  // The same from gradients of zero, after which running statistics are what they were.
  absl::Status AccumulateOnly(const Work& work, const SampleRange& batch, StepReport* report);
  absl::StatusOr<LossSums> ForwardOne(Work work, const SampleRange& batch, const SampleRange& part);
  // Forward over the first `samples` samples of the set that belongs to work.phase, in order, as
  // the parts of one batch go forward in training. `after_batch` is told the chunk that a batch
  // passed.
  absl::StatusOr<LossSums> Pass(Work work, int64_t samples,
                                const std::function<absl::Status(int chunk)>& after_batch);
  absl::StatusOr<LossSums> RecalibratedPass(Work work, const EvaluateRequest& request);
  absl::Status Failed(const absl::Status& status);
  void Publish(uint64_t step);

  LocalStage* const stage_;
  Feed* const feed_;
  const LrScheduleSpec lr_;
  StepGate gate_;

  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  absl::Status stop_ ABSL_GUARDED_BY(mutex_);
  ActivitySeconds published_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thinwire
