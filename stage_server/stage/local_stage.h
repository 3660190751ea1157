// The part of the model that one process trains: its chunks and what they do together. Runs single
// actions; the executor decides which and when.
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
#include "proto/stage.pb.h"
#include "stage_server/boundary/epoch_rows.h"
#include "stage_server/boundary/statistics.h"
#include "stage_server/parts/sum_exchange.h"
#include "stage_server/replicas/averager.h"
#include "stage_server/replicas/local_replicas.h"
#include "stage_server/stage/capture.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/device_clock.h"
#include "stage_server/stage/model_chunk.h"
#include "stage_server/stage/stage.h"
#include "stage_server/swap/swapper.h"
#include "wire/link.h"

namespace thinwire {

class LocalStage {
 public:
  static absl::StatusOr<std::unique_ptr<LocalStage>> Build(const StageSpec& spec,
                                                           const Backend& backend);
  ~LocalStage();

  // Returns the options of the link that Attach takes for that end.
  absl::StatusOr<LinkOptions> LinkOptionsFor(const CutEndSpec& end) const {
    return LinkOptionsOf(spec_, end, backend_);
  }
  // Makes the end of a cut to another stage. `end` is one of NeighbourEnds, each of which is
  // attached once. Called on the actions' thread, or before there is one. The stage takes ownership
  // of the link. After an error nothing is attached; the error is CloseLinks' reason if there was
  // one.
  absl::Status Attach(const CutEndSpec& end, std::unique_ptr<Link> link);
  // Return the options of the link to the machine that has this stage of another carrier, and
  // attach it likewise.
  absl::StatusOr<LinkOptions> PeerLinkOptionsFor(int carrier) const;
  absl::Status AttachPeer(int carrier, std::unique_ptr<Link> link);
  // Returns FailedPrecondition, naming a stage, while one is not attached: then no action may run.
  // Any thread.
  absl::Status CheckConnected();
  // Ends every wait for another stage, for good. Any thread.
  void CloseLinks(const absl::Status& reason);

  // Prepares for the steps of `spec`. Called before the first action of an epoch of training.
  void StartEpoch(const EpochSpec& spec);

  // Runs one microbatch through the chunk of `work`. Takes the activation from `samples` or from
  // the chunk before. Sends the result to the chunk behind; behind the last segment it computes the
  // loss instead. An evaluation returns its loss, all others return an empty sum. Training keeps
  // what the backward action needs.
  absl::StatusOr<LossSums> Forward(const Work& work, const std::optional<Samples>& samples);
  // Runs the backward pass of a microbatch; `work` as in its Forward. When it returns, the gradient
  // is on its way to the chunk before. Where the schedule SplitsBackward, weight gradients are left
  // to BackwardWeights and what it needs is kept.
  absl::Status Backward(const Work& work) { return chunks_[work.chunk]->Backward(work); }
  // Computes the weight gradients after Backward, where the schedule SplitsBackward. Exchanges
  // nothing.
  absl::Status BackwardWeights(const Work& work) {
    return chunks_[work.chunk]->BackwardWeights(work);
  }
  // Says in which order the backward passes of a step come, of which no forward pass has begun.
  void ExpectBackwards(const std::vector<SwapPass>& passes) {
    if (swapper_ != nullptr) swapper_->Expect(passes);
  }
  // Waits for the device after all backward passes of a step, as an update needs it. Returns the
  // step's loss, summed in the order of the forward passes, where the stage has the last segment.
  // OutOfRange if a loss is not finite; a Backward may return that already.
  absl::StatusOr<LossSums> TakeLosses(const Work& work);
  // Returns the findings about single labels, of the evaluation since the last call, where the
  // stage has the last segment; empty elsewhere, and of a model without them.
  PredictedLabels TakePredicted() { return chunks_.back()->TakePredicted(); }
  // Sets all gradients to zero. Update does so too.
  absl::Status ClearGradients();
  // Replaces all parameters except those named in `kept` by the values of a safetensors file, and
  // sets gradients to zero. `next` gives the next piece of the file and returns false after the
  // last. Errors are those of ParameterReader.
  absl::Status ImportParameters(const std::vector<std::string>& kept,
                                const std::function<bool(std::string_view* piece)>& next);
  // Does the same with the file that `write` hands to its sink, piece by piece. Errors are those of
  // `write`, too.
  using Sink = std::function<absl::Status(std::string_view)>;
  absl::Status ReplaceParameters(const std::vector<std::string>& kept,
                                 const std::function<absl::Status(const Sink&)>& write);
  // Gives both copies of a tied weight the sum of both gradients, after all backward passes of a
  // step. Waits for the stage of the other copy. `work` as in a Forward.
  absl::Status SumTiedGradients(const Work& work);
  // Does the same for both copies of each basis that a cut learns. Waits for the stages on the
  // other side of the cuts.
  absl::Status SumBasisGradients(const Work& work);
  // Begin a step of all replicas, and the turn of each that is carried here.
  absl::Status StartStep(const Work& work);
  absl::Status StartReplica() { return averager_->StartReplica(); }
  // Puts running statistics back to the begin of a step that is not done.
  absl::Status DropStep() { return averager_->StartReplica(); }
  // With replicas, takes the gradients as the contribution of work.replica, and sets them to zero.
  absl::Status Contribute(const Work& work);
  // Sets the gradients to the sum of all contributions of the step, as everybody uses it. Waits for
  // the other carriers.
  absl::Status TakeAverage(const Work& work);
  // Updates the parameters, after SumTiedGradients and SumBasisGradients. With
  // OptimizerSpec::clip_norm it waits for all other stages to add up the norm of the whole model's
  // gradient. A stage that has the model in one segment does not even wait for its device, if the
  // optimizer allows that.
  absl::Status Update(const Work& work, double lr);
  // Waits until all stages of all carriers have the averages of the step. Returns the sum of
  // squares of the whole model's gradient. At the last stage the report then is of all replicas.
  absl::StatusOr<double> AgreeOnUpdate(const Work& work, StepReport* report);
  // Does an update that all have agreed on. Waits for nobody.
  absl::Status UpdateAgreed(const Work& work, double lr, double squares);
  // Receives the acknowledgements of the last evaluation batches.
  absl::Status FinishEvaluation(const Work& last_batch);
  // Starts to recalibrate all segments of a chunk. The result must be destroyed before the stage.
  // Batches are Forwards of PHASE_RECALIBRATE, which return no loss.
  absl::StatusOr<std::unique_ptr<Recalibration>> StartRecalibration(int chunk);
  // Runs the next positions of one text through this stage. `ids` are their tokens; the position of
  // the first is that of `work`. It is 0, which begins a new text and forgets the last one, or
  // positions(). In `work`, microbatch and samples are one. Returns the logits of the last position
  // at the last stage, otherwise nothing.
  absl::StatusOr<std::vector<float>> Generate(const Work& work, absl::Span<const int32_t> ids);
  // Returns the number of positions of the text whose keys and values are kept; 0 without one.
  // Other work of the stage and new parameters end the text.
  int64_t positions() const { return text_ ? text_->positions : 0; }
  // Returns the wire bytes that the stage has sent outside of training.
  uint64_t EvaluationWireBytes() const;
  // Waits until the codec workers have encoded and handed over everything sent.
  absl::Status FlushSends(SteadyTime deadline);
  // Hands on what was captured of one step; see Capture::Take.
  absl::Status TakeCapture(uint64_t step, size_t piece_bytes,
                           const std::function<absl::Status(std::string_view)>& sink) {
    return capture_.Take(step, piece_bytes, sink);
  }
  // Drops what forward passes left behind when a step was broken off.
  void Abandon();

  // Returns what replicas exchange; null without replicas. It lives as long as the stage.
  ReplicaAverager* averager() const { return averager_.get(); }

  // Returns what adds up the results of tensor-parallel parts; null if layers have none. It lives
  // as long as the stage.
  SumExchange* sums() const { return sums_.get(); }

  // Returns what is counted of the stash. Thread-safe, as the counts are.
  const StashCounts& stash() const { return stash_; }

  // Returns what is counted of tensors that wait elsewhere; nothing if none do. Any thread.
  std::optional<SwapCounts> swap() const {
    return swapper_ == nullptr ? std::nullopt : std::make_optional(swapper_->counts());
  }

  // Returns the replicas that train locally; null if they do not. It lives as long as the stage.
  LocalReplicas* local() const { return local_.get(); }

  // Returns the parameters of all segments. Safetensors files hold these, under their names.
  std::vector<const Parameter*> parameters() const;
  // Returns those of all segments in model order, with the tensor-parallel parts elsewhere.
  std::vector<ParameterSpec> AllParameters() const;
  // Adds to `tensors`, parameters or what is remembered of them, those of tensor-parallel parts
  // elsewhere. All carriers of a replica's parts call it; it empties `tensors` at all but the
  // first.
  absl::Status GatherParts(std::vector<Parameter>* tensors) const;
  // Returns one optimizer for each segment.
  std::vector<Optimizer*> optimizers() const;

  const StageSpec& spec() const { return spec_; }
  ActivitySeconds& activity() { return activity_; }
  const ActivitySeconds& activity() const { return activity_; }
  // Resets the activity to `before` and drops times that are not settled.
  void RestoreActivity(const ActivitySeconds& before);

  using End = ModelChunk::End;
  // Returns every end at this stage, cuts inside the process included. Any thread. The ends live as
  // long as the stage; their own comments say which of their functions any thread may call.
  std::vector<End> ends() const;

 private:
  // A text being generated.
  struct Text {
    KeyValueCache cache;
    int64_t positions = 0;
  };

  LocalStage(const StageSpec& spec, const Backend& backend)
      : spec_(spec), backend_(backend), capture_(spec.capture), clock_(backend.ops.get()) {}
  absl::Status BuildInnerTies();
  absl::Status BuildSums();
  absl::Status BuildSwapper();
  // Place of the link to another carrier.
  struct PeerPlace {
    CarrierPeers* peers = nullptr;
    int index = 0;
  };
  PeerPlace PeerPlaceOf(int carrier) const;
  // Returns the most messages of a carrier of other parts that may wait here.
  int MessagesOfParts() const;
  absl::Status BuildReplicas();
  // Returns whether a segment's contributions leave before the step's last backward passes end:
  // where other machines wait for nothing else. Between stages they would delay messages at cuts,
  // for which a carrier that is behind still waits.
  bool ContributesEarly() const;
  absl::Status ContributeEarly(const Work& work, int segment);
  CutEnds* PlaceOf(const CutEndSpec& end);
  // Returns the attached ends of chunks, and those of the tied cut.
  std::vector<CutEnd*> OuterEnds() const;
  // Gives all copies, and those of other stages, the sums of their gradients.
  absl::Status SumGradients(const Work& work, const std::vector<GradientCopy>& copies);
  std::vector<Segment*> segments() const;
  // Returns the sum of squares of the whole model's gradient. A running sum goes forward from chunk
  // to chunk, and the total comes back the same way.
  absl::StatusOr<double> SumOfSquares(const Work& work);
  absl::StatusOr<double> PassSquaresOn(const Work& work);
  absl::StatusOr<double> PassSquaresBack(const Work& work, double sum);
  // Returns the factor by which an update scales gradients.
  absl::StatusOr<GradientScale> Clip(const Work& work);
  absl::Status UpdateScaled(const Work& work, double lr, const GradientScale& scale);
  absl::StatusOr<Tensor> IdsOf(absl::Span<const int32_t> ids) const;

  const StageSpec spec_;
  const Backend backend_;
  Capture capture_;  // of all cuts; they are destroyed before it
  ActivitySeconds activity_;
  DeviceClock clock_;
  // The attached ends in chunks and those at the copies of a tied weight, as well as those inside
  // the process. The lock guards the pointers; the thread that writes them may read them without
  // it.
  mutable std::mutex neighbours_mutex_;
  std::unique_ptr<SumExchange> sums_;  // outlives the chunks, as does the next
  StashCounts stash_;
  std::unique_ptr<Swapper> swapper_;  // null: nothing leaves the device
  std::vector<std::unique_ptr<ModelChunk>> chunks_;
  CutEnds embedding_, head_;
  std::unique_ptr<ReplicaAverager> averager_;
  std::unique_ptr<LocalReplicas> local_;
  absl::Status closed_ ABSL_GUARDED_BY(neighbours_mutex_);  // the first reason of CloseLinks
  std::unique_ptr<Text> text_;                              // null: no text
};

}  // namespace thinwire
