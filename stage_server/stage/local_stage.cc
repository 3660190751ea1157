#include "stage_server/stage/local_stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "nn/gradient_norm.h"
#include "nn/parameters.h"
#include "nn/recorded_segment.h"
#include "stage_server/stage/safetensors.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

Mode ModeOf(Phase phase) {
  if (phase == PHASE_TRAIN) return Mode::kTrain;
  return phase == PHASE_RECALIBRATE ? Mode::kRecalibrate : Mode::kEvaluate;
}

// Recordings know one step only, and one input.
bool IsRecordable(const Model& model, const BlockRange& range) {
  return std::none_of(
      model.blocks.begin() + range.first, model.blocks.begin() + range.last,
      [](const BlockSpec& block) { return IsRandom(block.layers) || ReadsIds(block.layers); });
}

// Takes a tensor through a cut inside the process.
absl::StatusOr<Tensor> Cross(CutEnd& from, CutEnd& to, const Work& work, uint64_t digest,
                             Tensor x) {
  RETURN_IF_ERROR(from.Send(work, digest, std::move(x)));
  ASSIGN_OR_RETURN(auto received, to.Receive(work, digest));
  return std::move(received.tensor);
}

// The same for a part of the gradient's norm.
absl::StatusOr<double> CrossSum(CutEnd& from, CutEnd& to, const Work& work, double sum) {
  RETURN_IF_ERROR(from.SendSumOfSquares(work, sum));
  return to.ReceiveSumOfSquares(work);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStage>> LocalStage::Build(const StageSpec& spec,
                                                              const Backend& backend) {
  std::unique_ptr<LocalStage> stage(new LocalStage(spec, backend));
  RETURN_IF_ERROR(stage->BuildSegments());
  RETURN_IF_ERROR(stage->BuildInnerCuts());
  RETURN_IF_ERROR(stage->BuildInnerTies());
  stage->in_flight_.resize(spec.microbatches);
  return stage;
}

LocalStage::~LocalStage() { CloseLinks(absl::CancelledError("the stage ends")); }

absl::Status LocalStage::BuildSegments() {
  const int64_t microbatches = std::min<int64_t>(spec_.microbatches, spec_.batch_size);
  RecordingOptions recording;
  recording.device = backend_.device;
  recording.ops = backend_.ops.get();
  recording.least_batch = spec_.batch_size / microbatches;
  recording.most_batch = (spec_.batch_size + microbatches - 1) / microbatches;
  for (int i = spec_.first_segment(); i < spec_.end_segment(); ++i) {
    const BlockRange blocks = SegmentBlocks(spec_.model, spec_.cuts, i);
    SegmentOptions options;
    options.device = backend_.device;
    options.ops = backend_.ops.get();
    options.compute = spec_.compute;
    options.init_seed = spec_.init_seed;
    options.dropout_seed = spec_.dropout_seed;
    options.recompute = spec_.recompute;
    options.needs_input_gradient = i > 0;
    options.splits_backward = SplitsBackward(spec_.schedule);
    ASSIGN_OR_RETURN(auto segment,
                     BuildSegment(absl::MakeConstSpan(spec_.model.blocks)
                                      .subspan(blocks.first, blocks.last - blocks.first),
                                  options));
    ASSIGN_OR_RETURN(auto optimizer, NewOptimizer(spec_.optimizer, segment->parameters(),
                                                  backend_.device, backend_.ops.get()));
    if (IsRecordable(spec_.model, blocks)) {
      segment = RecordSegment(std::move(segment), recording);
    }
    segments_.push_back(std::move(segment));
    optimizers_.push_back(std::move(optimizer));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::BuildInnerCuts() {
  for (int cut = spec_.first_segment(); cut + 1 < spec_.end_segment(); ++cut) {
    const CutEndSpec up{cut, DIRECTION_ACTIVATION, "this process", Worker::kInline};
    const CutEndSpec down{cut, DIRECTION_GRADIENT, "this process", Worker::kInline};
    ASSIGN_OR_RETURN(const LinkOptions up_options, LinkOptionsFor(up));
    ASSIGN_OR_RETURN(const LinkOptions down_options, LinkOptionsFor(down));
    auto [up_link, down_link] = NewMemoryLinks(up_options, down_options);
    InnerCut& inner = inner_cuts_.emplace_back();
    ASSIGN_OR_RETURN(inner.upstream,
                     CutEnd::New(spec_, up, backend_, &capture_, std::move(up_link)));
    ASSIGN_OR_RETURN(inner.downstream,
                     CutEnd::New(spec_, down, backend_, &capture_, std::move(down_link)));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::BuildInnerTies() {
  if (!spec_.has_tied_cut() || spec_.stages() > 1) return absl::OkStatus();
  const CutEndSpec embedding = TiedEnd(spec_, DIRECTION_ACTIVATION, "this process");
  const CutEndSpec head = TiedEnd(spec_, DIRECTION_GRADIENT, "this process");
  ASSIGN_OR_RETURN(const LinkOptions embedding_options, LinkOptionsFor(embedding));
  ASSIGN_OR_RETURN(const LinkOptions head_options, LinkOptionsFor(head));
  auto [embedding_link, head_link] = NewMemoryLinks(embedding_options, head_options);
  ASSIGN_OR_RETURN(embedding_, NewTiedCopy(embedding, std::move(embedding_link)));
  ASSIGN_OR_RETURN(head_, NewTiedCopy(head, std::move(head_link)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TiedCopy>> LocalStage::NewTiedCopy(const CutEndSpec& end,
                                                                  std::unique_ptr<Link> link) {
  const bool is_embedding = end.sends == DIRECTION_ACTIVATION;
  Segment& segment = is_embedding ? *segments_.front() : *segments_.back();
  const Parameter* const weight =
      FindParameter(segment.parameters(), is_embedding ? spec_.tied->name : spec_.tied->copy);
  return TiedCopy::New(spec_, end, backend_, weight, &capture_, std::move(link));
}

absl::Status LocalStage::Attach(const CutEndSpec& end, std::unique_ptr<Link> link) {
  const auto put = [this, &end](auto made, auto* place) -> absl::Status {
    const std::lock_guard<std::mutex> lock(neighbours_mutex_);
    RETURN_IF_ERROR(closed_);
    if (*place != nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cut ", spec_.CutName(end.cut), ": stage ", spec_.stage, " is connected there already"));
    }
    *place = std::move(made);
    return absl::OkStatus();
  };
  const bool sends_gradients = end.sends == DIRECTION_GRADIENT;
  if (end.cut == spec_.tied_cut()) {
    ASSIGN_OR_RETURN(auto made, NewTiedCopy(end, std::move(link)));
    return put(std::move(made), sends_gradients ? &head_ : &embedding_);
  }
  ASSIGN_OR_RETURN(auto made, CutEnd::New(spec_, end, backend_, &capture_, std::move(link)));
  return put(std::move(made), sends_gradients ? &upstream_ : &downstream_);
}

absl::Status LocalStage::CheckConnected() const {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  const auto lacks = [this](int stage, const char* why) {
    return absl::FailedPreconditionError(
        absl::StrCat("stage ", spec_.stage, " is not connected to stage ", stage, why));
  };
  if (!spec_.first() && upstream_ == nullptr) return lacks(spec_.stage - 1, "");
  if (!spec_.last() && downstream_ == nullptr) return lacks(spec_.stage + 1, "");
  if (spec_.has_tied_link() && embedding_ == nullptr && head_ == nullptr) {
    return lacks(spec_.first() ? spec_.stages() - 1 : 0, " for the tied weight");
  }
  return absl::OkStatus();
}

void LocalStage::CloseLinks(const absl::Status& reason) {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  if (closed_.ok()) closed_ = reason;
  if (upstream_) upstream_->receiver().Stop(reason);
  if (downstream_) downstream_->receiver().Stop(reason);
  if (embedding_) embedding_->end().receiver().Stop(reason);
  if (head_) head_->end().receiver().Stop(reason);
}

absl::StatusOr<std::unique_ptr<Recalibration>> LocalStage::StartRecalibration() {
  std::vector<Segment*> segments;
  for (const auto& segment : segments_) segments.push_back(segment.get());
  return Recalibration::Start(std::move(segments), backend_.device);
}

void LocalStage::StartEpoch(const EpochSpec& spec) {
  const auto samples = std::make_shared<const EpochRows>(spec, NeedsSampleIds(spec_));
  std::shared_ptr<const EpochRows> weights;
  if (spec_.has_tied_cut()) {
    weights = std::make_shared<const EpochRows>(TiedEpochOf(spec_, spec), /*needs_ids=*/false);
  }
  const auto rows = [&](const BoundarySpec& boundary) {
    return static_cast<int>(boundary.cut) == spec_.tied_cut() ? weights : samples;
  };
  for (const End& end : ends()) {
    if (end.sender) end.sender->StartEpoch(rows(end.sender->spec()));
    if (end.receiver) end.receiver->StartEpoch(rows(end.receiver->spec()));
  }
}

absl::StatusOr<BoundaryReceiver::Received> LocalStage::Input(
    const Work& work, const std::optional<Samples>& samples) {
  if (spec_.first()) return BoundaryReceiver::Received{samples->inputs, samples->digest};
  ScopedTimer timer(&activity_.upstream.receive, upstream_->WaitSlice(work));
  std::optional<uint64_t> digest;
  if (samples) digest = samples->digest;
  ASSIGN_OR_RETURN(auto received, upstream_->Receive(work, digest));
  if (work.phase != PHASE_TRAIN) RETURN_IF_ERROR(upstream_->Acknowledge(work));
  return received;
}

absl::StatusOr<LossSums> LocalStage::Forward(const Work& work,
                                             const std::optional<Samples>& samples) {
  const bool training = work.phase == PHASE_TRAIN;
  text_.reset();
  auto in_flight = std::make_unique<InFlight>();
  in_flight->saved.resize(segments_.size());
  ASSIGN_OR_RETURN(auto input, Input(work, samples));
  const uint64_t digest = in_flight->sample_digest = input.sample_digest;
  Pass pass(ModeOf(work.phase), work.step, work.first_sample);
  if (reads_inputs_ && spec_.model.tokens) pass.ids = samples->inputs;
  Tensor x = std::move(input.tensor);
  for (size_t i = 0; i < segments_.size(); ++i) {
    {
      ScopedTimer timer(&activity_.forward, MicrobatchSlice(spec_, work, "forward"));
      ASSIGN_OR_RETURN(x,
                       segments_[i]->Forward(x, pass, training ? &in_flight->saved[i] : nullptr));
      if (i + 1 == segments_.size() && spec_.last()) break;  // the loss waits
      RETURN_IF_ERROR(FinishCompute());
    }
    if (i + 1 == segments_.size()) break;
    const InnerCut& cut = inner_cuts_[i];
    ASSIGN_OR_RETURN(x, Cross(*cut.upstream, *cut.downstream, work, digest, std::move(x)));
  }
  LossSums sums;
  if (work.phase == PHASE_RECALIBRATE && spec_.last()) return sums;
  if (spec_.last()) {
    ScopedTimer timer(&activity_.forward, MicrobatchSlice(spec_, work, "forward loss"));
    ASSIGN_OR_RETURN(sums, Loss(work, std::move(x), *samples, in_flight.get()));
  } else {
    RETURN_IF_ERROR(SendDownstream(work, digest, std::move(x)));
  }
  if (training) in_flight_[work.microbatch] = std::move(in_flight);
  return sums;
}

absl::Status LocalStage::SendDownstream(const Work& work, uint64_t digest, Tensor y) {
  if (work.phase != PHASE_TRAIN && work.step > kEvaluationWindow) {
    ScopedTimer timer(&activity_.downstream.send, {});
    RETURN_IF_ERROR(downstream_->AwaitAcknowledgement(work, work.step - kEvaluationWindow));
  }
  return downstream_->Send(work, digest, std::move(y));
}

absl::StatusOr<LossSums> LocalStage::Loss(const Work& work, Tensor logits, const Samples& samples,
                                          InFlight* in_flight) {
  const bool training = work.phase == PHASE_TRAIN;
  const int64_t batch_rows = work.batch_size * spec_.model.positions;
  ASSIGN_OR_RETURN(LossSums sums, SoftmaxCrossEntropy(std::move(logits), samples.labels, batch_rows,
                                                      backend_.ops.get(),
                                                      training ? &in_flight->dlogits : nullptr));
  if (!std::isfinite(sums.loss)) {
    return absl::OutOfRangeError(absl::StrCat("stage ", spec_.stage, ": the loss is ", sums.loss,
                                              training ? " at step " : " at test batch ", work.step,
                                              " of epoch ", work.epoch));
  }
  return sums;
}

absl::Status LocalStage::Backward(const Work& work) {
  std::unique_ptr<InFlight> in_flight = std::move(in_flight_[work.microbatch]);
  Tensor dy;
  if (spec_.last()) {
    dy = std::move(in_flight->dlogits);
  } else {
    ScopedTimer timer(&activity_.downstream.receive, downstream_->WaitSlice(work));
    ASSIGN_OR_RETURN(auto received, downstream_->Receive(work, in_flight->sample_digest));
    dy = std::move(received.tensor);
  }
  const bool splits = SplitsBackward(spec_.schedule);
  for (size_t i = segments_.size(); i-- > 0;) {
    {
      ScopedTimer timer(&activity_.backward,
                        MicrobatchSlice(spec_, work, splits ? "backward input" : "backward"));
      ASSIGN_OR_RETURN(dy, segments_[i]->Backward(dy, &in_flight->saved[i]));
      RETURN_IF_ERROR(FinishCompute());
    }
    if (i == 0) break;
    const InnerCut& cut = inner_cuts_[i - 1];
    ASSIGN_OR_RETURN(
        dy, Cross(*cut.downstream, *cut.upstream, work, in_flight->sample_digest, std::move(dy)));
  }
  const uint64_t digest = in_flight->sample_digest;
  if (splits) in_flight_[work.microbatch] = std::move(in_flight);
  if (spec_.first()) return absl::OkStatus();
  return upstream_->Send(work, digest, std::move(dy));
}

absl::Status LocalStage::BackwardWeights(const Work& work) {
  const std::unique_ptr<InFlight> in_flight = std::move(in_flight_[work.microbatch]);
  ScopedTimer timer(&activity_.backward, MicrobatchSlice(spec_, work, "backward weight"));
  for (size_t i = segments_.size(); i-- > 0;) {
    RETURN_IF_ERROR(segments_[i]->BackwardWeights(&in_flight->saved[i]));
  }
  return FinishCompute();
}

absl::Status LocalStage::ClearGradients() {
  for (const auto& segment : segments_) RETURN_IF_ERROR(segment->ClearGradients());
  return absl::OkStatus();
}

absl::Status LocalStage::ImportParameters(
    const std::vector<std::string>& kept,
    const std::function<bool(std::string_view* piece)>& next) {
  std::vector<const Parameter*> replaced = parameters();
  replaced.erase(std::remove_if(replaced.begin(), replaced.end(),
                                [&](const Parameter* parameter) {
                                  return std::find(kept.begin(), kept.end(),
                                                   parameter->spec.name) != kept.end();
                                }),
                 replaced.end());
  ParameterReader reader(replaced);
  absl::Status status;
  for (std::string_view piece; status.ok() && next(&piece);) status = reader.Append(piece);
  if (status.ok()) status = reader.Finish();
  status.Update(ClearGradients());
  for (const auto& segment : segments_) status.Update(segment->ParametersChanged());
  text_.reset();  // its keys and values were those of other parameters
  return status;
}

absl::Status LocalStage::SumTiedGradients(const Work& work) {
  if (!spec_.tied) return absl::OkStatus();
  if (!spec_.has_tied_cut()) {
    ScopedTimer timer(&activity_.backward, StepSlice(spec_, work, "backward tied"));
    const absl::Span<Parameter> parameters = segments_.front()->parameters();
    RETURN_IF_ERROR(AddTiedGradients(*FindParameter(parameters, spec_.tied->name),
                                     *FindParameter(parameters, spec_.tied->copy),
                                     backend_.ops.get()));
    return FinishCompute();
  }
  if (embedding_) RETURN_IF_ERROR(embedding_->Send(work));
  if (head_) RETURN_IF_ERROR(head_->Send(work));
  ScopedTimer timer(&activity_.tied.receive, StepSlice(spec_, work, "receive_wait"));
  if (embedding_) RETURN_IF_ERROR(embedding_->Receive(work));
  if (head_) RETURN_IF_ERROR(head_->Receive(work));
  return FinishCompute();
}

std::vector<BasisCopy> LocalStage::BasisCopies() const {
  std::vector<BasisCopy> copies;
  const auto add = [&](CutEnd* end, int cut, bool is_before) {
    const std::optional<LearnedBasis> basis = LearnedBasisAt(spec_.model, spec_.cuts[cut]);
    if (!basis) return;
    const int segment = (is_before ? cut : cut + 1) - spec_.first_segment();
    const std::string& name = is_before ? basis->name : basis->copy;
    copies.emplace_back(end, FindParameter(segments_[segment]->parameters(), name), backend_);
  };
  if (upstream_) add(upstream_.get(), spec_.upstream_cut(), /*is_before=*/false);
  for (size_t i = 0; i < inner_cuts_.size(); ++i) {
    const int cut = spec_.first_segment() + static_cast<int>(i);
    add(inner_cuts_[i].upstream.get(), cut, /*is_before=*/true);
    add(inner_cuts_[i].downstream.get(), cut, /*is_before=*/false);
  }
  if (downstream_) add(downstream_.get(), spec_.downstream_cut(), /*is_before=*/true);
  return copies;
}

absl::Status LocalStage::SumBasisGradients(const Work& work) {
  const std::vector<BasisCopy> copies = BasisCopies();
  for (const BasisCopy& copy : copies) RETURN_IF_ERROR(copy.Send(work));
  for (const BasisCopy& copy : copies) {
    const bool is_upstream = copy.end() == upstream_.get();
    ScopedTimer timer(is_upstream ? &activity_.upstream.receive : &activity_.downstream.receive,
                      copy.end()->StepWaitSlice(work));
    RETURN_IF_ERROR(copy.Receive(work));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::AddSquaresOf(Segment* segment, const Work& work, double* sum) const {
  const absl::Status status = AddSquares(segment->parameters(), backend_.ops.get(), sum);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("stage ", spec_.stage, ": at step ", work.step,
                                                  " of epoch ", work.epoch, " ", status.message()));
}

absl::StatusOr<double> LocalStage::SumOfSquares(const Work& work) {
  double sum = 0;
  if (upstream_) {
    ScopedTimer timer(&activity_.upstream.receive, upstream_->StepWaitSlice(work));
    ASSIGN_OR_RETURN(sum, upstream_->ReceiveSumOfSquares(work));
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (i > 0) {
      const InnerCut& cut = inner_cuts_[i - 1];
      ASSIGN_OR_RETURN(sum, CrossSum(*cut.upstream, *cut.downstream, work, sum));
    }
    ScopedTimer timer(&activity_.optimizer, StepSlice(spec_, work, "optimizer norm"));
    RETURN_IF_ERROR(AddSquaresOf(segments_[i].get(), work, &sum));
  }
  if (downstream_) {
    RETURN_IF_ERROR(downstream_->SendSumOfSquares(work, sum));
    ScopedTimer timer(&activity_.downstream.receive, downstream_->StepWaitSlice(work));
    ASSIGN_OR_RETURN(sum, downstream_->ReceiveSumOfSquares(work));
  }
  for (size_t i = inner_cuts_.size(); i-- > 0;) {
    const InnerCut& cut = inner_cuts_[i];
    ASSIGN_OR_RETURN(sum, CrossSum(*cut.downstream, *cut.upstream, work, sum));
  }
  if (upstream_) RETURN_IF_ERROR(upstream_->SendSumOfSquares(work, sum));
  return sum;
}

absl::Status LocalStage::Update(const Work& work, double lr) {
  double gradient_scale = 1;
  if (spec_.optimizer.clip_norm > 0) {
    ASSIGN_OR_RETURN(const double squares, SumOfSquares(work));
    gradient_scale = ClipScale(squares, spec_.optimizer.clip_norm);
  }
  ScopedTimer timer(&activity_.optimizer, StepSlice(spec_, work, "optimizer"));
  for (size_t i = 0; i < segments_.size(); ++i) {
    RETURN_IF_ERROR(optimizers_[i]->Step(lr, gradient_scale));
    RETURN_IF_ERROR(segments_[i]->ParametersChanged());
  }
  return FinishCompute();
}

absl::StatusOr<Tensor> LocalStage::IdsOf(absl::Span<const int32_t> ids) const {
  const auto positions = static_cast<int64_t>(ids.size());
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(backend_.device, DType::kI32, {1, positions}));
  RETURN_IF_ERROR(ToStatus(backend_.device->CopyFromHost(x.data(), ids.data(), x.bytes())));
  return x;
}

absl::StatusOr<Tensor> LocalStage::TextInput(const Work& work, const Tensor& ids, int64_t positions,
                                             uint64_t digest) {
  if (spec_.first()) return ids;
  ASSIGN_OR_RETURN(auto received, upstream_->Receive(work, digest));
  if (received.tensor.shape()[1] == positions) return std::move(received.tensor);
  return absl::InvalidArgumentError(
      absl::StrCat("cut ", spec_.CutName(spec_.upstream_cut()), ": ", work.key().ToString(), ": ",
                   received.tensor.shape()[1], " positions, want ", positions));
}

absl::StatusOr<std::vector<float>> LocalStage::LastLogits(const Tensor& logits) {
  const int64_t classes = logits.shape()[2], last = logits.shape()[1] - 1;
  TensorView row = logits.view();
  row.rank = 2;
  row.dims[0] = 1;
  row.dims[1] = classes;
  row.data = static_cast<uint8_t*>(row.data) + last * classes * SizeOf(row.dtype);
  ASSIGN_OR_RETURN(const Tensor wide, Tensor::Allocate(backend_.device, DType::kF32, {1, classes}));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(row, wide.view())));
  std::vector<float> values(classes);
  RETURN_IF_ERROR(ToStatus(backend_.device->CopyToHost(values.data(), wide.data(), wide.bytes())));
  return values;
}

absl::StatusOr<std::vector<float>> LocalStage::Generate(const Work& work,
                                                        absl::Span<const int32_t> ids,
                                                        int64_t first_position) {
  if (first_position == 0) text_ = std::make_unique<Text>();
  Pass pass(Mode::kEvaluate, work.step);
  pass.cache = &text_->cache;
  pass.first_position = first_position;
  Digest ids_digest;
  for (const int32_t id : ids) ids_digest.AddWord(static_cast<uint64_t>(id));
  const uint64_t digest = ids_digest.value();
  if (reads_inputs_) {
    ASSIGN_OR_RETURN(pass.ids, IdsOf(ids));
  }
  ASSIGN_OR_RETURN(Tensor x, TextInput(work, pass.ids, static_cast<int64_t>(ids.size()), digest));
  for (size_t i = 0; i < segments_.size(); ++i) {
    ASSIGN_OR_RETURN(x, segments_[i]->Forward(x, pass, nullptr));
    RETURN_IF_ERROR(FinishCompute());
    if (i + 1 == segments_.size()) break;
    const InnerCut& cut = inner_cuts_[i];
    ASSIGN_OR_RETURN(x, Cross(*cut.upstream, *cut.downstream, work, digest, std::move(x)));
  }
  text_->positions = first_position + static_cast<int64_t>(ids.size());
  if (spec_.last()) return LastLogits(x);
  // The answer to this call is all that lets the next one come.
  RETURN_IF_ERROR(downstream_->Send(work, digest, std::move(x)));
  RETURN_IF_ERROR(downstream_->sender().AwaitEncoded(work.deadline));
  return std::vector<float>();
}

uint64_t LocalStage::EvaluationWireBytes() const {
  uint64_t bytes = 0;
  for (const End& end : ends()) {
    if (end.sender) bytes += end.sender->statistics().evaluate.wire_bytes;
  }
  return bytes;
}

absl::Status LocalStage::FinishEvaluation(const Work& last_batch) {
  if (spec_.last()) return absl::OkStatus();
  ScopedTimer timer(&activity_.downstream.send, {});
  const uint64_t batches = last_batch.step;
  uint64_t step = batches > kEvaluationWindow ? batches - kEvaluationWindow + 1 : 1;
  for (; step <= batches; ++step) {
    RETURN_IF_ERROR(downstream_->AwaitAcknowledgement(last_batch, step));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::FlushSends(SteadyTime deadline) {
  if (upstream_) {
    ScopedTimer timer(&activity_.upstream.send, {});
    RETURN_IF_ERROR(upstream_->sender().Flush(deadline));
  }
  if (downstream_) {
    ScopedTimer timer(&activity_.downstream.send, {});
    RETURN_IF_ERROR(downstream_->sender().Flush(deadline));
  }
  for (TiedCopy* copy : {embedding_.get(), head_.get()}) {
    if (copy == nullptr) continue;
    ScopedTimer timer(&activity_.tied.send, {});
    RETURN_IF_ERROR(copy->end().sender().Flush(deadline));
  }
  return absl::OkStatus();
}

void LocalStage::Abandon() {
  for (auto& in_flight : in_flight_) in_flight.reset();
  for (InnerCut& cut : inner_cuts_) {
    cut.upstream->Abandon();
    cut.downstream->Abandon();
  }
}

std::vector<const Parameter*> LocalStage::parameters() const {
  std::vector<const Parameter*> all;
  for (const auto& segment : segments_) {
    for (const Parameter& parameter : segment->parameters()) all.push_back(&parameter);
  }
  return all;
}

std::vector<Optimizer*> LocalStage::optimizers() const {
  std::vector<Optimizer*> all;
  for (const auto& optimizer : optimizers_) all.push_back(optimizer.get());
  return all;
}

std::vector<LocalStage::End> LocalStage::ends() const {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  std::vector<End> ends;
  const auto add = [&ends](CutEnd* sender, CutEnd* receiver) {
    if (sender) ends.push_back({&sender->sender(), nullptr});
    if (receiver) ends.push_back({nullptr, &receiver->receiver()});
  };
  add(upstream_.get(), upstream_.get());
  for (const InnerCut& cut : inner_cuts_) {
    add(cut.upstream.get(), cut.downstream.get());  // activations
    add(cut.downstream.get(), cut.upstream.get());  // gradients
  }
  add(downstream_.get(), downstream_.get());
  for (TiedCopy* copy : {embedding_.get(), head_.get()}) {
    if (copy) add(&copy->end(), &copy->end());
  }
  return ends;
}

}  // namespace thinwire
