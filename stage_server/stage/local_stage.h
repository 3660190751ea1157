// What one process trains: its chunks, and what they do together. Runs single actions; the executor
// decides which and when.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/steady_time.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/segment/recalibration.h"
#include "nn/segment/segment.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/device_clock.h"
#include "stage_server/stage/model_chunk.h"
#include "stage_server/stage/stage.h"
#include "stage_server/stage/tied_copy.h"
#include "wire/link.h"

namespace thinwire {

class LocalStage {
 public:
  static absl::StatusOr<std::unique_ptr<LocalStage>> Build(const StageSpec& spec,
                                                           const Backend& backend);
  ~LocalStage();

  // The options of the link that Attach takes for that end.
  absl::StatusOr<LinkOptions> LinkOptionsFor(const CutEndSpec& end) const {
    return LinkOptionsOf(spec_, end, backend_);
  }
  // Makes the end of a cut to another stage, one of NeighbourEnds, once each; on the thread of the
  // actions, or before there is one. The link belongs to the stage from now on. After an error,
  // which is CloseLinks' reason if there was one, nothing is attached.
  absl::Status Attach(const CutEndSpec& end, std::unique_ptr<Link> link);
  // FailedPrecondition names a stage that is not attached: then no action may run. Any thread.
  absl::Status CheckConnected() const;
  // Ends every wait at another stage, for good. Any thread.
  void CloseLinks(const absl::Status& reason);

  // Before the first action of an epoch of training.
  void StartEpoch(const EpochSpec& spec);

  // Runs one microbatch through the chunk of `work`: takes the activation from `samples` or the
  // chunk before, hands it to the chunk behind or, behind the last segment, makes its loss, which
  // an evaluation returns (otherwise empty). Training keeps what the backward action needs.
  absl::StatusOr<LossSums> Forward(const Work& work, const std::optional<Samples>& samples);
  // `work` as in its Forward. The gradient is on its way to the chunk before when this returns.
  // Where the schedule SplitsBackward, the gradients of weights are left to BackwardWeights, and
  // what it needs is kept.
  absl::Status Backward(const Work& work) { return chunks_[work.chunk]->Backward(work); }
  // After that, where the schedule SplitsBackward. Exchanges nothing.
  absl::Status BackwardWeights(const Work& work) {
    return chunks_[work.chunk]->BackwardWeights(work);
  }
  // Waits, after all backwards of a step, for the device, as an update wants it. Returns the step's
  // loss, added up in the order of forwards, where the stage has the last segment. OutOfRange for a
  // loss that is no finite number, which may come from a Backward already.
  absl::StatusOr<LossSums> TakeLosses(const Work& work);
  // Gradients are zero. Update does so too.
  absl::Status ClearGradients();
  // Parameters, but for those whose names are in `kept`, have the values of the safetensors file
  // whose pieces `next` gives, false after the last; see ParameterReader. Gradients are zero.
  absl::Status ImportParameters(const std::vector<std::string>& kept,
                                const std::function<bool(std::string_view* piece)>& next);
  // After all backwards of a step: both copies of a tied weight take the sum of both gradients.
  // Waits for the stage of the other copy. `work` as in a Forward.
  absl::Status SumTiedGradients(const Work& work);
  // Likewise: both copies of each basis that a cut learns take the sum of both gradients. Waits for
  // the stages at its other side.
  absl::Status SumBasisGradients(const Work& work);
  // After that, where the step is to be taken. With OptimizerSpec::clip_norm waits for all other
  // stages, for the norm of the whole model's gradient; a stage that has all of it in one segment
  // does not even wait for its device, where the optimizer allows that.
  absl::Status Update(const Work& work, double lr);
  // Takes the acknowledgements that the last evaluation batches still owe.
  absl::Status FinishEvaluation(const Work& last_batch);
  // Recalibrates all segments of a chunk, and goes before the stage. Its batches are Forwards of
  // PHASE_RECALIBRATE, which return no loss.
  absl::StatusOr<std::unique_ptr<Recalibration>> StartRecalibration(int chunk);
  // Runs the next positions of one text through this stage: `ids` are their tokens, at
  // `first_position`, which is 0 (a text begins, and the last one is forgotten) or positions(). Of
  // `work` microbatch and samples are one. Returns the logits of the last position at the last
  // stage, otherwise nothing.
  absl::StatusOr<std::vector<float>> Generate(const Work& work, absl::Span<const int32_t> ids,
                                              int64_t first_position);
  // Of the text whose keys and values are here; 0 without one. Whatever else runs through the
  // stage, and new parameters, end it.
  int64_t positions() const { return text_ ? text_->positions : 0; }
  // Wire bytes that the stage has sent outside of training.
  uint64_t EvaluationWireBytes() const;
  // Waits until the codec workers have encoded and handed over all that was sent.
  absl::Status FlushSends(SteadyTime deadline);
  // What was captured of one step; see Capture::Take.
  absl::Status TakeCapture(uint64_t step, size_t piece_bytes,
                           const std::function<absl::Status(std::string_view)>& sink) {
    return capture_.Take(step, piece_bytes, sink);
  }
  // Drops what forwards left behind, when a step was broken off.
  void Abandon();

  // Safetensors files have names and tensors of this stage's segments.
  std::vector<const Parameter*> parameters() const;
  // One for each of its segments.
  std::vector<Optimizer*> optimizers() const;

  const StageSpec& spec() const { return spec_; }
  ActivitySeconds& activity() { return activity_; }
  const ActivitySeconds& activity() const { return activity_; }
  // Forgets what was counted since `before`.
  void RestoreActivity(const ActivitySeconds& before);

  using End = ModelChunk::End;
  // Every end at this stage, cuts inside the process included. Any thread; they live as long as
  // the stage, and what an end may be asked is for the end to say.
  std::vector<End> ends() const;

 private:
  // A text that is being generated.
  struct Text {
    KeyValueCache cache;
    int64_t positions = 0;
  };

  LocalStage(const StageSpec& spec, const Backend& backend)
      : spec_(spec), backend_(backend), capture_(spec.capture), clock_(backend.ops.get()) {}
  absl::Status BuildInnerTies();
  absl::StatusOr<std::unique_ptr<TiedCopy>> NewTiedCopy(const CutEndSpec& end,
                                                        std::unique_ptr<Link> link);
  std::unique_ptr<CutEnd>* PlaceOf(const CutEndSpec& end) const;
  std::vector<Segment*> segments() const;
  // The sum of squares of the whole model's gradient: the sum passes on from chunk to chunk, and
  // what it has become behind the last segment comes back.
  absl::StatusOr<double> SumOfSquares(const Work& work);
  // Returns what an update's gradients count with.
  absl::StatusOr<GradientScale> Clip(const Work& work);
  absl::StatusOr<Tensor> IdsOf(absl::Span<const int32_t> ids) const;

  const StageSpec spec_;
  const Backend backend_;
  Capture capture_;  // of all cuts, which go before it
  ActivitySeconds activity_;
  DeviceClock clock_;
  // The ends in chunks that are attached, and the copies of a tied weight: both where all cuts are
  // inside the process. Under the lock, but the thread that writes them may read them without.
  mutable std::mutex neighbours_mutex_;
  std::vector<std::unique_ptr<ModelChunk>> chunks_;
  std::unique_ptr<TiedCopy> embedding_, head_;
  absl::Status closed_ ABSL_GUARDED_BY(neighbours_mutex_);  // the first reason of CloseLinks
  std::unique_ptr<Text> text_;                              // null: none
};

}  // namespace thinwire
