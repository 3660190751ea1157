#include "stage_server/stage/model_chunk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "models/parts.h"
#include "nn/gradient_norm.h"
#include "nn/parameters.h"
#include "nn/segment/recorded_segment.h"
#include "nn/segment/segment.h"
#include "stage_server/stage/batch_parts.h"
#include "stage_server/stage/documents.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Most classes of which it is counted which is taken for which.
constexpr size_t kMaxConfused = 16;

Mode ModeOf(Phase phase) {
  if (IsTrainingPass(phase)) return Mode::kTrain;
  return Recalibrates(phase) ? Mode::kRecalibrate : Mode::kEvaluate;
}

// Returns the index, in the chunk, of the first segment at whose end something has been trained;
// the number of segments if there is none.
size_t FirstTrainedOf(const StageSpec& spec, const SegmentRange& segments) {
  int segment = segments.first;
  const int last = static_cast<int>(spec.cuts.size());
  while (segment < segments.end && segment < last && !spec.has_gradients(segment)) ++segment;
  return static_cast<size_t>(segment - segments.first);
}

// Sends a tensor through a cut inside the process and returns what arrives.
absl::StatusOr<BoundaryReceiver::Received> Cross(
    CutEnd& from, CutEnd& to, const Work& work, uint64_t digest, Tensor x,
    const std::vector<uint32_t>& document_starts = {}) {
  RETURN_IF_ERROR(from.Send(work, digest, std::move(x), document_starts));
  return to.Receive(work, digest);
}

// Does the same for a part of the gradient's norm.
absl::StatusOr<double> CrossSum(CutEnd& from, CutEnd& to, const Work& work, double sum) {
  RETURN_IF_ERROR(from.SendSumOfSquares(work, sum));
  return to.ReceiveSumOfSquares(work);
}

// Receives a part of the norm from all machines of a stage, which have the same.
absl::StatusOr<double> ReceiveSum(const std::vector<CutEnd*>& ends, const Work& work) {
  std::optional<double> sum;
  for (CutEnd* const end : ends) {
    ASSIGN_OR_RETURN(const double one, end->ReceiveSumOfSquares(work));
    if (sum.value_or(one) != one) {
      const BoundarySpec& of_end = end->receiver().spec();
      return absl::InternalError(absl::StrCat("cut ", of_end.name, ", ", of_end.peer,
                                              ": a sum of squares of ", one,
                                              ", from another machine of that stage ", *sum));
    }
    sum = one;
  }
  return *sum;
}

absl::Status SendSum(const std::vector<CutEnd*>& ends, const Work& work, double sum) {
  for (CutEnd* const end : ends) RETURN_IF_ERROR(end->SendSumOfSquares(work, sum));
  return absl::OkStatus();
}

}  // namespace

ModelChunk::ModelChunk(const Stage& stage, int index)
    : spec_(stage.spec),
      backend_(stage.backend),
      capture_(*stage.capture),
      activity_(*stage.activity),
      clock_(*stage.clock),
      sums_(stage.sums),
      range_(spec_.segments(index)),
      first_trained_(FirstTrainedOf(spec_, range_)),
      begins_model_(spec_.begins_model(index)),
      ends_model_(spec_.ends_model(index)),
      reads_inputs_(ReadsInputs(spec_, index)) {}

absl::StatusOr<std::unique_ptr<ModelChunk>> ModelChunk::Build(const Stage& stage, int index) {
  std::unique_ptr<ModelChunk> chunk(new ModelChunk(stage, index));
  RETURN_IF_ERROR(chunk->BuildStash(stage, index));
  RETURN_IF_ERROR(chunk->BuildSegments());
  RETURN_IF_ERROR(chunk->BuildInnerCuts());
  chunk->in_flight_.resize(stage.spec.batch_microbatches() * stage.spec.slices());
  if (stage.spec.slices() > 1) chunk->caches_.resize(stage.spec.batch_microbatches());
  return chunk;
}

absl::Status ModelChunk::BuildStash(const Stage& stage, int index) {
  StashOptions options;
  options.does = spec_.stash;
  options.codec_seed = spec_.seeds.codec;
  options.error_every = spec_.error_every;
  options.device = backend_.device;
  options.kernels = KernelsOfWaiting(backend_);
  options.counts = stage.stash;
  options.swapper = stage.swapper;
  options.chunk = index;
  for (size_t i = 0; i < spec_.keeping.size(); ++i) {
    if (!spec_.keeping[i].stash) options.not_coded.insert(spec_.model.blocks[i].name);
    if (spec_.keeping[i].swap) options.swapped.insert(spec_.model.blocks[i].name);
  }
  ASSIGN_OR_RETURN(stash_, TensorStash::New(options));
  return absl::OkStatus();
}

std::vector<BlockKeeping> ModelChunk::KeepingOf(int segment) const {
  const BlockRange blocks = SegmentBlocks(spec_.model, spec_.cuts, segment);
  std::vector<BlockKeeping> keeping(spec_.keeping.begin() + blocks.first,
                                    spec_.keeping.begin() + blocks.last);
  const bool is_received = segment > 0 && KeepsPayloads(spec_, segment - 1, backend_);
  if (is_received) keeping.front().stash = true;
  return keeping;
}

absl::Status ModelChunk::BuildSegments() {
  const int64_t microbatches = MicrobatchesOf(spec_, spec_.batch_size);
  RecordingOptions recording;
  recording.device = backend_.device;
  recording.ops = backend_.ops.get();
  recording.least_batch = spec_.batch_size / microbatches;
  recording.most_batch = (spec_.batch_size + microbatches - 1) / microbatches;
  for (int i = range_.first; i < range_.end; ++i) {
    const BlockRange blocks = SegmentBlocks(spec_.model, spec_.cuts, i);
    SegmentOptions options;
    options.device = backend_.device;
    options.ops = backend_.ops.get();
    options.compute = spec_.compute;
    options.init_seed =
        spec_.begins_anew ? std::optional<uint64_t>(spec_.seeds.init) : std::nullopt;
    options.dropout_seed = spec_.seeds.dropout;
    options.keeping = KeepingOf(i);
    options.needs_input_gradient = i > 0 && spec_.has_gradients(i - 1);
    options.splits_backward = SplitsBackward(spec_.schedule);
    options.sums = sums_;
    options.stash = stash_.get();
    options.ends_model = recording.ends_model =
        ends_model_ && i + 1 == range_.end && EndsLinear(spec_.model.blocks.back());
    std::vector<BlockSpec> carried(spec_.model.blocks.begin() + blocks.first,
                                   spec_.model.blocks.begin() + blocks.last);
    KeepParts(spec_.carried_parts().first, spec_.carried_parts().end, &carried);
    ASSIGN_OR_RETURN(auto segment, BuildSegment(carried, options));
    if (spec_.tied && !spec_.has_tied_cut()) {
      RETURN_IF_ERROR(ShareTiedValue(*spec_.tied, segment.get()));
    }
    ASSIGN_OR_RETURN(auto optimizer,
                     NewOptimizer(spec_.optimizer, segment->parameters(), backend_.device,
                                  backend_.ops.get(), backend_.host_ops.get()));
    if (IsRecordable(spec_, i)) {
      segment = RecordSegment(std::move(segment), recording);
    }
    segments_.push_back(std::move(segment));
    optimizers_.push_back(std::move(optimizer));
  }
  const bool is_one_segment =
      begins_model_ && ends_model_ && segments_.size() == 1 && spec_.grid.parts == 1;
  if (spec_.optimizer.clip_norm > 0 && is_one_segment && optimizers_[0]->takes_scale_on_device()) {
    ASSIGN_OR_RETURN(clip_, DeviceClip::New(segments_[0]->parameters(), spec_.optimizer.clip_norm,
                                            backend_.device, backend_.ops.get()));
  }
  return absl::OkStatus();
}

absl::Status ModelChunk::BuildInnerCuts() {
  for (int cut = range_.first; cut + 1 < range_.end; ++cut) {
    ASSIGN_OR_RETURN(inner_cuts_.emplace_back(), NewInnerCut(spec_, cut, backend_, &capture_));
  }
  return absl::OkStatus();
}

CutEnds* ModelChunk::PlaceOf(const CutEndSpec& end) {
  const bool is_upstream = end.sends == DIRECTION_GRADIENT;
  if (end.cut != (is_upstream ? range_.first - 1 : range_.end - 1)) return nullptr;
  return is_upstream ? &upstream_ : &downstream_;
}

PlannedSlice ModelChunk::SliceOf(const Work& work, size_t segment, const char* name) const {
  PlannedSlice planned = MicrobatchSlice(spec_, work, name);
  planned.slice.segment = range_.first + static_cast<int>(segment);
  return planned;
}

PlannedSlice ModelChunk::StepSliceOf(const Work& work, size_t segment, const char* name) const {
  PlannedSlice planned = StepSlice(spec_, work, name);
  planned.slice.segment = range_.first + static_cast<int>(segment);
  return planned;
}

absl::StatusOr<BoundaryReceiver::Received> ModelChunk::Input(
    const Work& work, const std::optional<Samples>& samples) {
  if (begins_model_) {
    return BoundaryReceiver::Received{samples->inputs, samples->digest, samples->document_starts};
  }
  CutEnd& end = upstream_.Of(work.replica);
  ScopedTimer timer(&WaitsAt(end).receive, end.WaitSlice(work));
  std::optional<uint64_t> digest;
  if (samples) digest = samples->digest;
  ASSIGN_OR_RETURN(auto received, end.Receive(work, digest));
  if (IsAcknowledged(work.phase)) RETURN_IF_ERROR(end.Acknowledge(work));
  const bool is_answered = !IsTrainingPass(work.phase) || sends_gradients();
  if (!is_answered) RETURN_IF_ERROR(end.AcknowledgeTraining(work));
  return received;
}

absl::StatusOr<LossSums> ModelChunk::Forward(const Work& work,
                                             const std::optional<Samples>& samples) {
  const bool training = IsTrainingPass(work.phase);
  auto in_flight = std::make_unique<InFlight>();
  in_flight->saved.resize(segments_.size());
  ASSIGN_OR_RETURN(auto input, Input(work, samples));
  const uint64_t digest = in_flight->sample_digest = input.sample_digest;
  in_flight->document_starts = input.document_starts;
  Pass pass(ModeOf(work.phase), work.step, work.first_sample);
  if (reads_inputs_ && spec_.model.tokens) pass.ids = samples->inputs;
  if (training && spec_.slices() > 1) {
    const int slice = static_cast<int>(work.microbatch) % spec_.slices();
    std::unique_ptr<KeyValueCache>& cache = caches_[work.microbatch / spec_.slices()];
    if (slice == 0) cache = std::make_unique<KeyValueCache>();
    pass.cache = cache.get();
    pass.first_position = spec_.FirstPosition(slice);
  }
  if (spec_.packs_documents) {
    const int64_t first = pass.first_position, positions = input.tensor.shape()[1];
    ASSIGN_OR_RETURN(pass.documents, DocumentsOf(input.document_starts, input.tensor.shape()[0],
                                                 spec_.model.input[1], {first, first + positions},
                                                 backend_.device));
  }
  Tensor x = std::move(input.tensor);
  std::shared_ptr<const ReceivedPayload> payload = std::move(input.payload);
  BeginSums(work);
  for (size_t i = 0; i < segments_.size(); ++i) {
    {
      DeviceClock::Timer timer(&clock_, &SecondsOf(i).forward, &activity_.core_wait,
                               SliceOf(work, i, "forward"));
      stash_->Begin(SliceOf(work, i, ""), x, std::move(payload));
      ASSIGN_OR_RETURN(x,
                       segments_[i]->Forward(x, pass, training ? &in_flight->saved[i] : nullptr));
      stash_->End();
      if (i + 1 == segments_.size() && ends_model_) break;
      RETURN_IF_ERROR(FinishCompute(work));
    }
    TakeOtherSeconds(&SecondsOf(i).forward);
    if (i + 1 == segments_.size()) break;
    const InnerCut& cut = inner_cuts_[i];
    ASSIGN_OR_RETURN(auto crossed, Cross(*cut.upstream, *cut.downstream, work, digest, std::move(x),
                                         input.document_starts));
    x = std::move(crossed.tensor);
    payload = std::move(crossed.payload);
  }
  TakeOtherSeconds(&SecondsOf(segments_.size() - 1).forward);
  if (Recalibrates(work.phase) && ends_model_) return LossSums();
  if (ends_model_) {
    const size_t last = segments_.size() - 1;
    const PlannedSlice slice = SliceOf(work, last, "forward loss");
    DeviceClock::Timer timer(&clock_, &SecondsOf(last).forward, &activity_.core_wait, slice);
    RETURN_IF_ERROR(SubmitLoss(work, std::move(x), *samples, in_flight.get()));
    RETURN_IF_ERROR(training ? FinishTraced(work, slice) : FinishCompute(work));
  } else {
    RETURN_IF_ERROR(SendDownstream(work, input, std::move(x)));
  }
  if (!training) return std::exchange(loss_sums_, LossSums());
  in_flight_[work.microbatch] = std::move(in_flight);
  return LossSums();
}

absl::Status ModelChunk::SendDownstream(const Work& work, const BoundaryReceiver::Received& input,
                                        Tensor y) {
  // In training the gradients that come back bound what is under way, here acknowledgements do.
  CutEnd& end = downstream_.Of(work.replica);
  if (IsAcknowledged(work.phase) && work.step > kEvaluationWindow) {
    ScopedTimer timer(&WaitsAt(end).send, {});
    RETURN_IF_ERROR(end.AwaitAcknowledgement(work, work.step - kEvaluationWindow));
  }
  return end.Send(work, input.sample_digest, std::move(y), input.document_starts);
}

absl::Status ModelChunk::SubmitLoss(const Work& work, Tensor logits, const Samples& samples,
                                    InFlight* in_flight) {
  if (!IsTrainingPass(work.phase)) RETURN_IF_ERROR(KeepPredictions(logits, samples.labels));
  ASSIGN_OR_RETURN(PendingLoss loss,
                   NewLoss(work, std::move(logits), samples.labels,
                           IsTrainingPass(work.phase) ? &in_flight->dlogits : nullptr));
  losses_.push_back(std::move(loss));
  return absl::OkStatus();
}

absl::StatusOr<PendingLoss> ModelChunk::NewLoss(const Work& work, Tensor logits,
                                                absl::Span<const int32_t> labels, Tensor* dlogits) {
  // A batch of which all labels are ignored has no gradient, whatever it is divided by.
  const int64_t batch_rows = std::max<int64_t>(1, work.loss_labels);
  Ops* const ops = backend_.ops.get();
  if (spec_.score_unit > 0) {
    return SubmitMeanSquaredError(std::move(logits), labels, spec_.score_unit, batch_rows, ops,
                                  dlogits);
  }
  return SubmitSoftmaxCrossEntropy(std::move(logits), Classes(), labels, batch_rows, ops, dlogits);
}

absl::Status ModelChunk::KeepPredictions(const Tensor& logits, absl::Span<const int32_t> labels) {
  const auto classes = static_cast<size_t>(Classes());
  if (spec_.model.positions > 1 || classes > kMaxConfused) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor wide,
                   Tensor::Allocate(backend_.device, DType::kF32, logits.shape()));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(logits.view(), wide.view())));
  std::vector<float> values(static_cast<size_t>(wide.elements()));
  RETURN_IF_ERROR(ToStatus(backend_.device->CopyToHost(values.data(), wide.data(), wide.bytes())));
  const size_t row = values.size() / labels.size();  // may be longer than the classes
  for (size_t i = 0; i < labels.size(); ++i) {
    if (spec_.score_unit > 0) {
      predicted_.predictions.push_back(values[i * row]);
      predicted_.scores.push_back(labels[i]);
    } else {
      CountPrediction(&values[i * row], labels[i]);
    }
  }
  return absl::OkStatus();
}

void ModelChunk::CountPrediction(const float* logits, int32_t label) {
  const auto classes = static_cast<size_t>(Classes());
  predicted_.confusion.resize(classes * classes);
  if (label < 0 || static_cast<size_t>(label) >= classes) return;  // the loss tells of it
  const auto prediction = static_cast<size_t>(std::max_element(logits, logits + classes) - logits);
  ++predicted_.confusion[static_cast<size_t>(label) * classes + prediction];
}

void ModelChunk::BeginSums(const Work& work) {
  if (sums_ != nullptr) sums_->Begin(work.key(), work.compress);
}

void ModelChunk::TakeOtherSeconds(double* layers) {
  if (sums_ != nullptr) *layers -= sums_->TakeSeconds();
  *layers -= stash_->TakeSeconds();
}

absl::Status ModelChunk::FinishCompute(const Work& work) {
  RETURN_IF_ERROR(ToStatus(backend_.device->Finish()));
  RETURN_IF_ERROR(clock_.Settle());
  return AddLosses(work);
}

absl::Status ModelChunk::AddLosses(const Work& work) {
  const bool training = IsTrainingPass(work.phase);
  for (const PendingLoss& loss : std::exchange(losses_, {})) {
    const LossSums& sums = loss.sums();
    if (!std::isfinite(sums.loss)) {
      return absl::OutOfRangeError(absl::StrCat("stage ", spec_.stage, ": the loss is ", sums.loss,
                                                training ? " at step " : " at test batch ",
                                                work.step, " of epoch ", work.epoch));
    }
    loss_sums_.loss += sums.loss;
    loss_sums_.correct += sums.correct;
    loss_sums_.counted += sums.counted;
  }
  return absl::OkStatus();
}

absl::StatusOr<LossSums> ModelChunk::TakeLosses(const Work& work) {
  RETURN_IF_ERROR(FinishCompute(work));
  return std::exchange(loss_sums_, LossSums());
}

absl::Status ModelChunk::Backward(const Work& work) {
  std::unique_ptr<InFlight> in_flight = std::move(in_flight_[work.microbatch]);
  // The first slice of a sequence is the last to come back: nothing reads its keys any more.
  const auto end_cache = [&] {
    const bool ends = !caches_.empty() && work.microbatch % spec_.slices() == 0;
    if (ends) caches_[work.microbatch / spec_.slices()].reset();
  };
  if (first_trained_ == segments_.size()) {
    end_cache();
    CutEnd& end = downstream_.Of(work.replica);
    ScopedTimer timer(&WaitsAt(end).receive, end.WaitSlice(work));
    return end.AwaitTaken(work);
  }
  Tensor dy;
  if (ends_model_) {
    dy = std::move(in_flight->dlogits);
  } else {
    CutEnd& end = downstream_.Of(work.replica);
    ScopedTimer timer(&WaitsAt(end).receive, end.WaitSlice(work));
    ASSIGN_OR_RETURN(auto received, end.Receive(work, in_flight->sample_digest));
    dy = std::move(received.tensor);
  }
  const bool splits = SplitsBackward(spec_.schedule);
  BeginSums(work);
  for (size_t i = segments_.size(); i-- > first_trained_;) {
    {
      const PlannedSlice slice = SliceOf(work, i, splits ? "backward input" : "backward");
      DeviceClock::Timer timer(&clock_, &SecondsOf(i).backward, &activity_.core_wait, slice);
      stash_->Begin(SliceOf(work, i, ""));
      ASSIGN_OR_RETURN(dy, segments_[i]->Backward(dy, &in_flight->saved[i]));
      const bool leaves = i > first_trained_ || sends_gradients();
      RETURN_IF_ERROR(leaves ? FinishCompute(work) : FinishTraced(work, slice));
    }
    TakeOtherSeconds(&SecondsOf(i).backward);
    if (!splits) RETURN_IF_ERROR(EndGradients(work, i));
    if (i == first_trained_) break;
    const InnerCut& cut = inner_cuts_[i - 1];
    ASSIGN_OR_RETURN(auto crossed,
                     Cross(*cut.downstream, *cut.upstream, work, in_flight->sample_digest,
                           std::move(dy), in_flight->document_starts));
    dy = std::move(crossed.tensor);
  }
  end_cache();
  const uint64_t digest = in_flight->sample_digest;
  std::vector<uint32_t> starts = std::move(in_flight->document_starts);
  if (splits) in_flight_[work.microbatch] = std::move(in_flight);
  if (!sends_gradients()) return absl::OkStatus();
  return upstream_.Of(work.replica).Send(work, digest, std::move(dy), std::move(starts));
}

absl::Status ModelChunk::BackwardWeights(const Work& work) {
  const std::unique_ptr<InFlight> in_flight = std::move(in_flight_[work.microbatch]);
  for (size_t i = segments_.size(); i-- > first_trained_;) {
    {
      const PlannedSlice slice = SliceOf(work, i, "backward weight");
      DeviceClock::Timer timer(&clock_, &SecondsOf(i).backward, &activity_.core_wait, slice);
      RETURN_IF_ERROR(segments_[i]->BackwardWeights(&in_flight->saved[i]));
      RETURN_IF_ERROR(FinishTraced(work, slice));
    }
    RETURN_IF_ERROR(EndGradients(work, i));
  }
  return absl::OkStatus();
}

absl::Status ModelChunk::EndGradients(const Work& work, size_t segment) {
  if (!work.ends_gradients) return absl::OkStatus();
  const int number = range_.first + static_cast<int>(segment);
  if (sums_ != nullptr) {
    MessageKey key = work.key();
    key.cut = static_cast<uint32_t>(number);
    RETURN_IF_ERROR(sums_->AddSliceGradients(key, segments_[segment]->parameters()));
  }
  const bool gives = take_gradients_ && begins_model_ && segment > 0;
  return gives ? take_gradients_(work, number) : absl::OkStatus();
}

absl::Status ModelChunk::Update(const Work& work, double lr, GradientScale gradient_scale) {
  for (size_t i = 0; i < segments_.size(); ++i) {
    const PlannedSlice slice = StepSliceOf(work, i, "optimizer");
    DeviceClock::Timer timer(&clock_, &SecondsOf(i).optimizer, &activity_.core_wait, slice);
    RETURN_IF_ERROR(optimizers_[i]->Step(lr, gradient_scale));
    RETURN_IF_ERROR(segments_[i]->ParametersUpdated());
    RETURN_IF_ERROR(FinishTraced(work, slice));
  }
  return absl::OkStatus();
}

absl::Status ModelChunk::AddSquaresOf(const Work& work, size_t segment, double* sum) {
  const absl::Span<const Parameter> here = segments_[segment]->parameters();
  if (spec_.grid.parts == 1) return AddSquares(here, backend_.ops.get(), sum);
  ASSIGN_OR_RETURN(const std::vector<double> squares, SquaresOf(here, backend_.ops.get()));
  std::map<std::string, double> own;
  for (const Parameter* parameter : CountedParameters(here)) {
    own[parameter->spec.name] = squares[own.size()];
  }
  std::vector<ParameterSpec> counted;
  std::vector<std::string> names;
  const int number = range_.first + static_cast<int>(segment);
  for (ParameterSpec& parameter : ParametersOfSegment(spec_, number)) {
    if (!IsCounted(parameter)) continue;
    names.push_back(parameter.name);
    counted.push_back(std::move(parameter));
  }
  MessageKey key = work.key();
  key.cut = static_cast<uint32_t>(number);
  key.microbatch = static_cast<uint32_t>(work.replica);
  ASSIGN_OR_RETURN(const std::vector<double> all, sums_->gather().All(key, counted, own));
  return AddSquaresInOrder(names, all, sum);
}

std::vector<CutEnd*> ModelChunk::EndsOfNorm(const CutEnds& ends, const Work& work) const {
  if (spec_.replicas.trains_locally()) return {&ends.Of(work.replica)};
  return ends.all();
}

absl::StatusOr<double> ModelChunk::PassSquaresOn(const Work& work) {
  double sum = 0;
  if (!upstream_.empty() && sends_gradients()) {
    const std::vector<CutEnd*> ends = EndsOfNorm(upstream_, work);
    ScopedTimer timer(&WaitsAt(*ends[0]).receive, ends[0]->StepWaitSlice(work));
    ASSIGN_OR_RETURN(sum, ReceiveSum(ends, work));
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (i > first_trained_) {
      const InnerCut& cut = inner_cuts_[i - 1];
      ASSIGN_OR_RETURN(sum, CrossSum(*cut.upstream, *cut.downstream, work, sum));
    }
    DeviceClock::Timer timer(&clock_, &SecondsOf(i).optimizer, &activity_.core_wait,
                             StepSliceOf(work, i, "optimizer norm"));
    RETURN_IF_ERROR(OfStep(work, AddSquaresOf(work, i, &sum)));
  }
  if (!downstream_.empty() && receives_gradients()) {
    RETURN_IF_ERROR(SendSum(EndsOfNorm(downstream_, work), work, sum));
  }
  return sum;
}

absl::StatusOr<double> ModelChunk::PassSquaresBack(const Work& work, double sum) {
  if (!downstream_.empty() && receives_gradients()) {
    const std::vector<CutEnd*> ends = EndsOfNorm(downstream_, work);
    ScopedTimer timer(&WaitsAt(*ends[0]).receive, ends[0]->StepWaitSlice(work));
    ASSIGN_OR_RETURN(sum, ReceiveSum(ends, work));
  }
  for (size_t i = inner_cuts_.size(); i-- > first_trained_;) {
    const InnerCut& cut = inner_cuts_[i];
    ASSIGN_OR_RETURN(sum, CrossSum(*cut.downstream, *cut.upstream, work, sum));
  }
  if (!upstream_.empty() && sends_gradients()) {
    RETURN_IF_ERROR(SendSum(EndsOfNorm(upstream_, work), work, sum));
  }
  return sum;
}

absl::StatusOr<bool> ModelChunk::ClipOnDevice(const Work& work, GradientScale* gradient_scale) {
  if (clip_ == nullptr) return false;
  const PlannedSlice slice = StepSliceOf(work, 0, "optimizer norm");
  DeviceClock::Timer timer(&clock_, &SecondsOf(0).optimizer, &activity_.core_wait, slice);
  RETURN_IF_ERROR(clip_->Submit());
  *gradient_scale = GradientScale(clip_->factor());
  RETURN_IF_ERROR(FinishTraced(work, slice));
  return true;
}

absl::Status ModelChunk::CheckClip(const Work& work) const {
  return clip_ == nullptr ? absl::OkStatus() : OfStep(work, clip_->Check());
}

absl::Status ModelChunk::OfStep(const Work& work, const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("stage ", spec_.stage, ": at step ", work.step,
                                                  " of epoch ", work.epoch, " ", status.message()));
}

std::vector<GradientCopy> ModelChunk::BasisCopies(int replica) const {
  std::vector<GradientCopy> copies;
  const auto add = [&](CutEnd* end, int cut, bool is_before) {
    const std::optional<LearnedBasis> basis = LearnedBasisAt(spec_.model, spec_.cuts[cut]);
    if (!basis) return;
    const int segment = (is_before ? cut : cut + 1) - range_.first;
    const std::string& name = is_before ? basis->name : basis->copy;
    copies.push_back({end, FindParameter(segments_[segment]->parameters(), name)});
  };
  if (!upstream_.empty()) add(&upstream_.Of(replica), range_.first - 1, /*is_before=*/false);
  for (size_t i = 0; i < inner_cuts_.size(); ++i) {
    const int cut = range_.first + static_cast<int>(i);
    add(inner_cuts_[i].upstream.get(), cut, /*is_before=*/true);
    add(inner_cuts_[i].downstream.get(), cut, /*is_before=*/false);
  }
  if (!downstream_.empty()) add(&downstream_.Of(replica), range_.end - 1, /*is_before=*/true);
  return copies;
}

absl::StatusOr<Tensor> ModelChunk::TextInput(const Work& work, const Pass& pass, int64_t positions,
                                             uint64_t digest) {
  if (begins_model_) return pass.ids;
  ASSIGN_OR_RETURN(auto received, upstream_.Of(work.replica).Receive(work, digest));
  if (received.tensor.shape()[1] == positions) return std::move(received.tensor);
  return absl::InvalidArgumentError(
      absl::StrCat("cut ", spec_.CutName(range_.first - 1), ": ", work.key().ToString(), ": ",
                   received.tensor.shape()[1], " positions, want ", positions));
}

int64_t ModelChunk::Classes() const {
  const Shape& out = spec_.model.blocks.back().out;
  return out[out.rank() - 1];
}

absl::StatusOr<std::vector<float>> ModelChunk::LastLogits(const Tensor& logits) {
  const int64_t classes = Classes(), last = logits.shape()[1] - 1;
  TensorView row = logits.view();
  row.rank = 2;
  row.dims[0] = 1;
  row.dims[1] = classes;
  row.data = static_cast<uint8_t*>(row.data) + last * logits.shape()[2] * SizeOf(row.dtype);
  ASSIGN_OR_RETURN(const Tensor wide, Tensor::Allocate(backend_.device, DType::kF32, {1, classes}));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(row, wide.view())));
  std::vector<float> values(classes);
  RETURN_IF_ERROR(ToStatus(backend_.device->CopyToHost(values.data(), wide.data(), wide.bytes())));
  return values;
}

absl::StatusOr<std::vector<float>> ModelChunk::Generate(const Work& work, const Pass& pass,
                                                        int64_t positions, uint64_t digest) {
  ASSIGN_OR_RETURN(Tensor x, TextInput(work, pass, positions, digest));
  BeginSums(work);
  for (size_t i = 0; i < segments_.size(); ++i) {
    ASSIGN_OR_RETURN(x, segments_[i]->Forward(x, pass, nullptr));
    RETURN_IF_ERROR(FinishCompute(work));
    if (i + 1 == segments_.size()) break;
    const InnerCut& cut = inner_cuts_[i];
    ASSIGN_OR_RETURN(auto crossed,
                     Cross(*cut.upstream, *cut.downstream, work, digest, std::move(x)));
    x = std::move(crossed.tensor);
  }
  if (ends_model_) return LastLogits(x);
  // The next call comes only after the answer to this one, so the message must have left by then.
  CutEnd& end = downstream_.Of(work.replica);
  RETURN_IF_ERROR(end.Send(work, digest, std::move(x)));
  RETURN_IF_ERROR(end.sender().AwaitEncoded(work.deadline));
  return std::vector<float>();
}

absl::Status ModelChunk::FinishEvaluation(const Work& last_batch) {
  if (ends_model_) return absl::OkStatus();
  CutEnd& end = downstream_.Of(last_batch.replica);
  ScopedTimer timer(&WaitsAt(end).send, {});
  const uint64_t batches = last_batch.step;
  uint64_t step = batches > kEvaluationWindow ? batches - kEvaluationWindow + 1 : 1;
  for (; step <= batches; ++step) {
    RETURN_IF_ERROR(end.AwaitAcknowledgement(last_batch, step));
  }
  // An acknowledgement may come before the sender's thread has counted what it sent.
  return end.sender().AwaitEncoded(last_batch.deadline);
}

void ModelChunk::Abandon() {
  stash_->End();
  (void)stash_->TakeSeconds();
  if (!losses_.empty()) (void)backend_.device->Finish();  // the device may still write them
  losses_.clear();
  loss_sums_ = LossSums();
  predicted_ = {};
  for (auto& in_flight : in_flight_) in_flight.reset();
  for (auto& cache : caches_) cache.reset();
  for (InnerCut& cut : inner_cuts_) {
    cut.upstream->Abandon();
    cut.downstream->Abandon();
  }
}

std::vector<CutEnd*> ModelChunk::outer_ends() const {
  std::vector<CutEnd*> ends = upstream_.all();
  for (CutEnd* const end : downstream_.all()) ends.push_back(end);
  return ends;
}

void ModelChunk::AppendEnds(std::vector<End>* ends) const {
  const auto add = [ends](CutEnd* sender, CutEnd* receiver) {
    ends->push_back({&sender->sender(), nullptr, sender->replicas()});
    ends->push_back({nullptr, &receiver->receiver(), receiver->replicas()});
  };
  for (CutEnd* const end : upstream_.all()) add(end, end);
  for (const InnerCut& cut : inner_cuts_) {
    add(cut.upstream.get(), cut.downstream.get());  // activations
    add(cut.downstream.get(), cut.upstream.get());  // gradients
  }
  for (CutEnd* const end : downstream_.all()) add(end, end);
}

}  // namespace thinwire
