// Neighbouring segments that one stage holds together, the cuts among them, and the ends of the
// cuts before and behind: what an action runs a microbatch through.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "nn/device_clip.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/segment/segment.h"
#include "stage_server/boundary/receiver.h"
#include "stage_server/boundary/sender.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/stage/basis_copy.h"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/device_clock.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

// The samples of one microbatch at a chunk that reads data.
struct Samples {
  Tensor inputs;                // where ReadsInputs
  std::vector<int32_t> labels;  // last stage
  uint64_t digest = 0;
};

class ModelChunk {
 public:
  // What all chunks of a stage share, and what outlives them.
  struct Stage {
    const StageSpec& spec;
    const Backend& backend;
    Capture* capture;
    ActivitySeconds* activity;
    DeviceClock* clock;  // of that activity
  };
  static absl::StatusOr<std::unique_ptr<ModelChunk>> Build(const Stage& stage, int index);

  // Where the end of a cut to another stage belongs, which is null until it is attached; null for
  // an end that the chunk does not have.
  std::unique_ptr<CutEnd>* PlaceOf(const CutEndSpec& end);

  // As LocalStage's, which says more of them.
  absl::StatusOr<LossSums> Forward(const Work& work, const std::optional<Samples>& samples);
  absl::Status Backward(const Work& work);
  absl::Status BackwardWeights(const Work& work);
  absl::StatusOr<LossSums> TakeLosses(const Work& work);
  // All gradients count with a factor. Waits for nothing.
  absl::Status Update(const Work& work, double lr, GradientScale gradient_scale);
  absl::Status FinishEvaluation(const Work& last_batch);
  absl::Status FlushSends(SteadyTime deadline);
  void Abandon();

  // The next positions of a text, of that digest. Logits where the chunk ends the model.
  absl::StatusOr<std::vector<float>> Generate(const Work& work, const Pass& pass, int64_t positions,
                                              uint64_t digest);

  // The sum of squares of all gradients up to the last segment, which the chunk behind is told.
  absl::StatusOr<double> PassSquaresOn(const Work& work);
  // What the sum has become behind the last segment, where `sum` is it; the chunk before is told.
  absl::StatusOr<double> PassSquaresBack(const Work& work, double sum);
  // Has the device make the factor of the update behind it, where the chunk has the whole model in
  // one segment and the optimizer takes that. Otherwise returns false and does nothing.
  absl::StatusOr<bool> ClipOnDevice(const Work& work, GradientScale* gradient_scale);
  // Says, after that and a Finish of the device, whether there was such a factor.
  absl::Status CheckClip(const Work& work) const;
  // One for each basis that a cut here learns.
  std::vector<BasisCopy> BasisCopies() const;

  const std::vector<std::unique_ptr<Segment>>& segments() const { return segments_; }
  // One for each segment.
  const std::vector<std::unique_ptr<Optimizer>>& optimizers() const { return optimizers_; }

  struct End {
    BoundarySender* sender = nullptr;
    BoundaryReceiver* receiver = nullptr;
  };
  // In model order, those inside the chunk included.
  void AppendEnds(std::vector<End>* ends) const;
  // The ends of cuts to other stages take no message any more.
  void CloseLinks(const absl::Status& reason);

 private:
  // Both ends of a cut inside the chunk: of the segment before it and of the one behind it.
  struct InnerCut {
    std::unique_ptr<CutEnd> upstream, downstream;
  };
  // What a microbatch leaves between its forward and the last part of its backward.
  struct InFlight {
    std::vector<Saved> saved;  // one per segment
    Tensor dlogits;            // where the chunk ends the model
    uint64_t sample_digest = 0;
  };

  ModelChunk(const Stage& stage, int index);
  absl::Status BuildSegments();
  absl::Status BuildInnerCuts();
  // Of an end to another stage.
  ActivitySeconds::Waits& WaitsAt(const CutEnd& end) { return activity_.waits[end.cut()]; }
  ActivitySeconds::Layers& SecondsOf(size_t segment) {
    return activity_.segments[range_.first + static_cast<int>(segment)];
  }
  PlannedSlice SliceOf(const Work& work, size_t segment, const char* name) const;
  PlannedSlice StepSliceOf(const Work& work, size_t segment, const char* name) const;
  // Waits for the device, as before a tensor goes to a codec's thread, and takes what is known
  // then: times and losses.
  absl::Status FinishCompute(const Work& work);
  // The same in a step that is traced, so that slices are what the device takes.
  absl::Status FinishTraced(const Work& work, const PlannedSlice& slice) {
    return slice.trace != nullptr ? FinishCompute(work) : absl::OkStatus();
  }
  absl::StatusOr<BoundaryReceiver::Received> Input(const Work& work,
                                                   const std::optional<Samples>& samples);
  absl::Status SubmitLoss(const Work& work, Tensor logits, const Samples& samples,
                          InFlight* in_flight);
  // Adds up the losses, all of which are known after a Finish.
  absl::Status AddLosses(const Work& work);
  absl::Status SendDownstream(const Work& work, uint64_t digest, Tensor y);
  // Adds stage and step to an error of a gradient.
  absl::Status OfStep(const Work& work, const absl::Status& status) const;
  // What the first segment takes of a text.
  absl::StatusOr<Tensor> TextInput(const Work& work, const Pass& pass, int64_t positions,
                                   uint64_t digest);
  int64_t Classes() const;
  absl::StatusOr<std::vector<float>> LastLogits(const Tensor& logits);

  const StageSpec& spec_;
  const Backend& backend_;
  Capture& capture_;
  ActivitySeconds& activity_;
  DeviceClock& clock_;
  const SegmentRange range_;
  const bool begins_model_, ends_model_, reads_inputs_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  std::unique_ptr<DeviceClip> clip_;  // null: the host's factor
  std::vector<InnerCut> inner_cuts_;
  std::unique_ptr<CutEnd> upstream_, downstream_;
  std::vector<std::unique_ptr<InFlight>> in_flight_;  // by microbatch, or unit
  std::vector<PendingLoss> losses_;                   // in the order of their forwards
  LossSums loss_sums_;                                // of those before them
  // By microbatch, where sequences are cut into slices: from the forward of the first slice to its
  // backward.
  std::vector<std::unique_ptr<KeyValueCache>> caches_;
};

}  // namespace thinwire
