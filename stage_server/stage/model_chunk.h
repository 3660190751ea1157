// Neighbouring segments that one stage holds, with the cuts among them and the ends of the cuts
// before and behind. An action runs a microbatch through one chunk.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "nn/device_clip.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/segment/segment.h"
#include "stage_server/boundary/receiver.h"
#include "stage_server/boundary/sender.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/parts/sum_exchange.h"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/device_clock.h"
#include "stage_server/stage/stage.h"
#include "stage_server/stash/stash_counts.h"
#include "stage_server/stash/tensor_stash.h"

namespace thinwire {

// Samples of one microbatch, at a chunk that reads data.
struct Samples {
  Tensor inputs;  // set where ReadsInputs
  // Sample after sample: labels_per_sample() of each, or one for each position. Set at the last
  // stage.
  std::vector<int32_t> labels;
  uint64_t digest = 0;                         // of the samples' ids, whether whole or in slices
  std::vector<uint32_t> document_starts = {};  // as in MessageHeader, where there are inputs
};

// Findings about single labels in an evaluation, as EvaluationReport has them; empty: none.
struct PredictedLabels {
  std::vector<uint64_t> confusion;
  std::vector<float> predictions;
  std::vector<int32_t> scores;
};

class ModelChunk {
 public:
  // Objects that all chunks of a stage share; outlives them.
  struct Stage {
    const StageSpec& spec;
    const Backend& backend;
    Capture* capture;
    ActivitySeconds* activity;
    DeviceClock* clock;  // adds to that activity
    SumExchange* sums;   // null: no layers are divided into parts
    StashCounts* stash;
    Swapper* swapper;  // null: nothing leaves the device
  };
  static absl::StatusOr<std::unique_ptr<ModelChunk>> Build(const Stage& stage, int index);

  // Has `take` called after a segment's last backward pass of a training step, while the segments
  // before it still have theirs: at the chunk that begins the model, as no chunk before waits for
  // it. `segment` is its number in the model.
  using TakeGradients = std::function<absl::Status(const Work& work, int segment)>;
  void OnGradients(TakeGradients take) { take_gradients_ = std::move(take); }

  // Returns the ends of a cut to another stage, which are none until they are attached. Returns
  // null if the chunk has no such cut.
  CutEnds* PlaceOf(const CutEndSpec& end);

  // Do for one chunk what LocalStage's functions of these names do for the stage.
  absl::StatusOr<LossSums> Forward(const Work& work, const std::optional<Samples>& samples);
  absl::Status Backward(const Work& work);
  absl::Status BackwardWeights(const Work& work);
  absl::StatusOr<LossSums> TakeLosses(const Work& work);
  // Returns the findings since the last call.
  PredictedLabels TakePredicted() { return std::exchange(predicted_, {}); }
  // Updates the parameters, with gradients scaled by `gradient_scale`. Waits for nothing.
  absl::Status Update(const Work& work, double lr, GradientScale gradient_scale);
  absl::Status FinishEvaluation(const Work& last_batch);
  void Abandon();

  // Runs the next positions of a text; `digest` is that of their ids. Returns logits where the
  // chunk ends the model.
  absl::StatusOr<std::vector<float>> Generate(const Work& work, const Pass& pass, int64_t positions,
                                              uint64_t digest);

  // Adds the squares of this chunk's gradients to the sum of the chunk before. Sends the result to
  // the chunk behind and returns it.
  absl::StatusOr<double> PassSquaresOn(const Work& work);
  // Passes the total from the last chunk back to the chunk before and returns it. `sum` is the
  // total where the chunk ends the model, and is ignored elsewhere.
  absl::StatusOr<double> PassSquaresBack(const Work& work, double sum);
  // Makes the device compute the clipping factor of the update that follows. Returns false and does
  // nothing unless the chunk has the whole model in one segment and the optimizer can read the
  // factor there.
  absl::StatusOr<bool> ClipOnDevice(const Work& work, GradientScale* gradient_scale);
  // Returns an error if that factor could not be computed. Called after a Finish of the device.
  absl::Status CheckClip(const Work& work) const;
  // Returns one copy for each basis that a cut here learns, with the end for that replica.
  std::vector<GradientCopy> BasisCopies(int replica) const;

  const std::vector<std::unique_ptr<Segment>>& segments() const { return segments_; }
  // Returns one optimizer for each segment.
  const std::vector<std::unique_ptr<Optimizer>>& optimizers() const { return optimizers_; }

  struct End {
    BoundarySender* sender = nullptr;
    BoundaryReceiver* receiver = nullptr;
    ReplicaRange replicas = {};  // whose messages it has
  };
  // Appends the ends in model order, those inside the chunk included.
  void AppendEnds(std::vector<End>* ends) const;
  // Returns the ends of cuts to other stages.
  std::vector<CutEnd*> outer_ends() const;

 private:
  // State that a microbatch keeps between its forward pass and the last part of its backward pass.
  struct InFlight {
    std::vector<Saved> saved;  // one for each segment
    Tensor dlogits;            // set where the chunk ends the model
    uint64_t sample_digest = 0;
    std::vector<uint32_t> document_starts;  // as in MessageHeader
  };

  ModelChunk(const Stage& stage, int index);
  absl::Status BuildStash(const Stage& stage, int index);
  // Returns what the blocks of a segment do. The first one has a payload put away, if it keeps its
  // input as one.
  std::vector<BlockKeeping> KeepingOf(int segment) const;
  absl::Status BuildSegments();
  absl::Status BuildInnerCuts();
  // Returns the waits at an end to another stage.
  ActivitySeconds::Waits& WaitsAt(const CutEnd& end) { return activity_.waits[end.cut()]; }
  ActivitySeconds::Layers& SecondsOf(size_t segment) {
    return activity_.segments[range_.first + static_cast<int>(segment)];
  }
  // Return whether gradients cross the cut to the chunk before, and that to the chunk behind.
  bool sends_gradients() const { return !begins_model_ && spec_.has_gradients(range_.first - 1); }
  bool receives_gradients() const { return first_trained_ < segments_.size(); }
  PlannedSlice SliceOf(const Work& work, size_t segment, const char* name) const;
  PlannedSlice StepSliceOf(const Work& work, size_t segment, const char* name) const;
  // Tells the sums over parts whose pass begins.
  void BeginSums(const Work& work);
  // Takes the seconds that sums over parts and the stash took in a pass out of those of its layers.
  void TakeOtherSeconds(double* layers);
  // Adds the squares of a segment's gradients, with those of its parts elsewhere.
  absl::Status AddSquaresOf(const Work& work, size_t segment, double* sum);
  // Waits for the device, as is needed before a tensor goes to a codec's thread. Then collects
  // times and losses, which are known by now.
  absl::Status FinishCompute(const Work& work);
  // Does the same in a traced step only, so that slices show what the device takes.
  absl::Status FinishTraced(const Work& work, const PlannedSlice& slice) {
    return slice.trace != nullptr ? FinishCompute(work) : absl::OkStatus();
  }
  absl::StatusOr<BoundaryReceiver::Received> Input(const Work& work,
                                                   const std::optional<Samples>& samples);
  // Returns the ends of a cut through which parts of the norm go: that of the replica which trains
  // by itself, or those to all machines of the other stage, as all replicas have one gradient.
  std::vector<CutEnd*> EndsOfNorm(const CutEnds& ends, const Work& work) const;
  // Completes a segment's gradients, to which no later action adds, and gives them away.
  absl::Status EndGradients(const Work& work, size_t segment);
  absl::Status SubmitLoss(const Work& work, Tensor logits, const Samples& samples,
                          InFlight* in_flight);
  absl::StatusOr<PendingLoss> NewLoss(const Work& work, Tensor logits,
                                      absl::Span<const int32_t> labels, Tensor* dlogits);
  // Counts which class each sample of an evaluation is taken for, or keeps what score.
  absl::Status KeepPredictions(const Tensor& logits, absl::Span<const int32_t> labels);
  void CountPrediction(const float* logits, int32_t label);
  // Adds up the pending losses; called after a Finish, when all are known.
  absl::Status AddLosses(const Work& work);
  // Sends what the chunk has made of `input`.
  absl::Status SendDownstream(const Work& work, const BoundaryReceiver::Received& input, Tensor y);
  // Adds stage and step to an error about a gradient.
  absl::Status OfStep(const Work& work, const absl::Status& status) const;
  // Returns the input of the first segment for a text.
  absl::StatusOr<Tensor> TextInput(const Work& work, const Pass& pass, int64_t positions,
                                   uint64_t digest);
  int64_t Classes() const;
  absl::StatusOr<std::vector<float>> LastLogits(const Tensor& logits);

  const StageSpec& spec_;
  const Backend& backend_;
  Capture& capture_;
  ActivitySeconds& activity_;
  DeviceClock& clock_;
  SumExchange* const sums_;  // null: none
  const SegmentRange range_;
  const size_t first_trained_;  // index of the first segment with a backward pass
  const bool begins_model_, ends_model_, reads_inputs_;
  TakeGradients take_gradients_;        // null: nobody takes them
  std::unique_ptr<TensorStash> stash_;  // outlives the segments
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  std::unique_ptr<DeviceClip> clip_;  // null: the host computes the factor
  std::vector<InnerCut> inner_cuts_;
  CutEnds upstream_, downstream_;
  std::vector<std::unique_ptr<InFlight>> in_flight_;  // by microbatch, or by unit with slices
  std::vector<PendingLoss> losses_;                   // in the order of their forward passes
  LossSums loss_sums_;                                // sum of the losses before those
  PredictedLabels predicted_;                         // in the evaluation under way
  // Keys and values by microbatch, where sequences are cut into slices; kept from the forward pass
  // of the first slice to its backward pass.
  std::vector<std::unique_ptr<KeyValueCache>> caches_;
};

}  // namespace thinwire
