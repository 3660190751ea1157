#include "stage_server/stage/local_stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "nn/recorded_segment.h"
#include "stage_server/stage/safetensors.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

Mode ModeOf(Phase phase) {
  if (phase == PHASE_TRAIN) return Mode::kTrain;
  return phase == PHASE_RECALIBRATE ? Mode::kRecalibrate : Mode::kEvaluate;
}

double* Slot(ActivitySeconds* seconds, Activity activity) {
  return &(*seconds)[static_cast<int>(activity)];
}

LinkOptions InnerLink(const StageSpec& spec, const BoundarySpec& incoming,
                      uint64_t max_payload_bytes) {
  LinkOptions options;
  options.run = spec.run;
  options.generation = spec.generation;
  options.name = incoming.name;
  options.peer = incoming.peer;
  options.cut = incoming.cut;
  options.receives = incoming.direction;
  options.max_payload_bytes = max_payload_bytes;
  options.queue_capacity = incoming.capacity;
  options.host = incoming.device->host();
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStage>> LocalStage::Build(const StageSpec& spec,
                                                              const Backend& backend) {
  std::unique_ptr<LocalStage> stage(new LocalStage(spec, backend));
  RETURN_IF_ERROR(stage->BuildSegments());
  RETURN_IF_ERROR(stage->BuildInnerCuts());
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
    options.needs_input_gradient = i > 0;
    ASSIGN_OR_RETURN(auto segment,
                     BuildSegment(absl::MakeConstSpan(spec_.model.blocks)
                                      .subspan(blocks.first, blocks.last - blocks.first),
                                  options));
    ASSIGN_OR_RETURN(auto optimizer, NewOptimizer(spec_.optimizer, segment->parameters(),
                                                  backend_.device, backend_.ops.get()));
    segments_.push_back(RecordSegment(std::move(segment), recording));
    optimizers_.push_back(std::move(optimizer));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::BuildInnerCuts() {
  for (int cut = spec_.first_segment(); cut + 1 < spec_.end_segment(); ++cut) {
    const BoundarySpec activations = BoundaryOf(spec_, cut, DIRECTION_ACTIVATION, backend_);
    const BoundarySpec gradients = BoundaryOf(spec_, cut, DIRECTION_GRADIENT, backend_);
    ASSIGN_OR_RETURN(const uint64_t activation_bytes, MaxPayloadBytes(activations));
    ASSIGN_OR_RETURN(const uint64_t gradient_bytes, MaxPayloadBytes(gradients));
    InnerCut inner;
    std::tie(inner.upstream, inner.downstream) =
        NewMemoryLinks(InnerLink(spec_, gradients, gradient_bytes),
                       InnerLink(spec_, activations, activation_bytes));
    inner.upstream_support = std::make_unique<SupportMaps>();
    inner.downstream_support = std::make_unique<SupportMaps>();
    Link *up = inner.upstream.get(), *down = inner.downstream.get();
    SupportMaps *at_up = inner.upstream_support.get(), *at_down = inner.downstream_support.get();
    ASSIGN_OR_RETURN(inner.activations.sender,
                     BoundarySender::New(activations, up, Worker::kInline, at_up));
    ASSIGN_OR_RETURN(inner.activations.receiver,
                     BoundaryReceiver::New(activations, down, Worker::kInline, at_down));
    ASSIGN_OR_RETURN(inner.gradients.sender,
                     BoundarySender::New(gradients, down, Worker::kInline, at_down));
    ASSIGN_OR_RETURN(inner.gradients.receiver,
                     BoundaryReceiver::New(gradients, up, Worker::kInline, at_up));
    inner_cuts_.push_back(std::move(inner));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::AttachUpstream(std::unique_ptr<Link> link, const std::string& peer) {
  return Attach(spec_.upstream_cut(), DIRECTION_GRADIENT, std::move(link), peer, &upstream_);
}

absl::Status LocalStage::AttachDownstream(std::unique_ptr<Link> link, const std::string& peer) {
  return Attach(spec_.downstream_cut(), DIRECTION_ACTIVATION, std::move(link), peer, &downstream_);
}

absl::Status LocalStage::Attach(int cut, Direction sends, std::unique_ptr<Link> link,
                                const std::string& peer, Neighbour* neighbour) {
  Neighbour made;
  made.link = std::move(link);
  made.support = std::make_unique<SupportMaps>();
  const Direction receives =
      sends == DIRECTION_ACTIVATION ? DIRECTION_GRADIENT : DIRECTION_ACTIVATION;
  BoundarySpec out = BoundaryOf(spec_, cut, sends, backend_);
  BoundarySpec in = BoundaryOf(spec_, cut, receives, backend_);
  out.peer = in.peer = peer;
  Link* const wire = made.link.get();
  SupportMaps* const support = made.support.get();
  ASSIGN_OR_RETURN(made.sender, BoundarySender::New(out, wire, Worker::kOwnThread, support));
  ASSIGN_OR_RETURN(made.receiver, BoundaryReceiver::New(in, wire, Worker::kOwnThread, support));
  absl::MutexLock lock(&neighbours_mutex_);
  RETURN_IF_ERROR(closed_);
  if (neighbour->link) {
    return absl::FailedPreconditionError(
        absl::StrCat("cut ", out.name, ": stage ", spec_.stage, " is connected there already"));
  }
  *neighbour = std::move(made);
  return absl::OkStatus();
}

absl::Status LocalStage::CheckConnected() const {
  absl::MutexLock lock(&neighbours_mutex_);
  const bool lacks_upstream = !spec_.first() && !upstream_.link;
  if (!lacks_upstream && (spec_.last() || downstream_.link)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("stage ", spec_.stage, " is not connected to stage ",
                   lacks_upstream ? spec_.stage - 1 : spec_.stage + 1));
}

void LocalStage::CloseLinks(const absl::Status& reason) {
  absl::MutexLock lock(&neighbours_mutex_);
  if (closed_.ok()) closed_ = reason;
  for (const Neighbour* neighbour : {&upstream_, &downstream_}) {
    if (neighbour->receiver) neighbour->receiver->Stop(reason);
  }
}

absl::StatusOr<std::unique_ptr<Recalibration>> LocalStage::StartRecalibration() {
  std::vector<Segment*> segments;
  for (const auto& segment : segments_) segments.push_back(segment.get());
  return Recalibration::Start(std::move(segments), backend_.device);
}

void LocalStage::StartEpoch(const EpochSpec& spec) {
  const auto rows = std::make_shared<const EpochRows>(spec, NeedsSampleIds(spec_));
  for (const End& end : ends()) {
    if (end.sender) end.sender->StartEpoch(rows);
    if (end.receiver) end.receiver->StartEpoch(rows);
  }
}

absl::StatusOr<Tensor> LocalStage::Input(const Work& work, const std::optional<Samples>& samples,
                                         uint64_t* digest) {
  if (spec_.first()) {
    *digest = samples->digest;
    return samples->inputs;
  }
  ScopedTimer timer(Slot(&activity_, Activity::kReceiveWait));
  BoundaryReceiver::Expected expected;
  expected.key = work.key();
  expected.batch = work.samples;
  expected.compressed = Compresses(spec_, work, upstream_.receiver->spec());
  if (samples) expected.sample_digest = samples->digest;
  ASSIGN_OR_RETURN(auto received, upstream_.receiver->Receive(expected, work.deadline));
  *digest = received.sample_digest;
  if (work.phase != PHASE_TRAIN) {
    RETURN_IF_ERROR(upstream_.sender->SendAcknowledgement(work.key()));
  }
  return std::move(received.tensor);
}

absl::StatusOr<Tensor> LocalStage::Cross(InnerCut* cut, const Work& work, bool gradient,
                                         uint64_t digest, Tensor x) {
  Channel& channel = gradient ? cut->gradients : cut->activations;
  const int64_t batch = x.shape()[0];
  RETURN_IF_ERROR(OfferToCapture(work, channel.sender->spec(), x));
  const bool compress = Compresses(spec_, work, channel.sender->spec());
  RETURN_IF_ERROR(channel.sender->Send(work.key(), digest, compress, std::move(x)));
  BoundaryReceiver::Expected expected;
  expected.key = work.key();
  expected.batch = batch;
  expected.compressed = compress;
  expected.sample_digest = digest;
  ASSIGN_OR_RETURN(auto received, channel.receiver->Receive(expected, work.deadline));
  return std::move(received.tensor);
}

absl::StatusOr<LossSums> LocalStage::Forward(const Work& work,
                                             const std::optional<Samples>& samples) {
  const bool training = work.phase == PHASE_TRAIN;
  auto in_flight = std::make_unique<InFlight>();
  in_flight->saved.resize(segments_.size());
  ASSIGN_OR_RETURN(Tensor x, Input(work, samples, &in_flight->sample_digest));
  for (size_t i = 0; i < segments_.size(); ++i) {
    {
      ScopedTimer timer(Slot(&activity_, Activity::kForward));
      ASSIGN_OR_RETURN(x, segments_[i]->Forward(x, ModeOf(work.phase),
                                                training ? &in_flight->saved[i] : nullptr));
      if (i + 1 == segments_.size() && spec_.last()) break;  // the loss waits
      RETURN_IF_ERROR(FinishCompute());
    }
    if (i + 1 == segments_.size()) break;
    ASSIGN_OR_RETURN(x, Cross(&inner_cuts_[i], work, /*gradient=*/false, in_flight->sample_digest,
                              std::move(x)));
  }
  LossSums sums;
  if (work.phase == PHASE_RECALIBRATE && spec_.last()) return sums;
  if (spec_.last()) {
    ScopedTimer timer(Slot(&activity_, Activity::kForward));
    ASSIGN_OR_RETURN(sums, Loss(work, x, *samples, in_flight.get()));
  } else {
    RETURN_IF_ERROR(SendDownstream(work, in_flight->sample_digest, std::move(x)));
  }
  if (training) in_flight_[work.microbatch] = std::move(in_flight);
  return sums;
}

// Not by the action's deadline, of which its forward may have taken the most.
absl::Status LocalStage::AwaitAcknowledgement(const MessageKey& key) {
  return downstream_.receiver->ReceiveAcknowledgement(key, SteadyTime::Now() + spec_.deadline);
}

absl::Status LocalStage::SendDownstream(const Work& work, uint64_t digest, Tensor y) {
  if (work.phase != PHASE_TRAIN && work.step > kEvaluationWindow) {
    ScopedTimer timer(Slot(&activity_, Activity::kSendWait));
    MessageKey taken = work.key();
    taken.step -= kEvaluationWindow;
    RETURN_IF_ERROR(AwaitAcknowledgement(taken));
  }
  RETURN_IF_ERROR(OfferToCapture(work, downstream_.sender->spec(), y));
  return downstream_.sender->Send(
      work.key(), digest, Compresses(spec_, work, downstream_.sender->spec()), std::move(y));
}

absl::Status LocalStage::OfferToCapture(const Work& work, const BoundarySpec& boundary,
                                        const Tensor& x) {
  MessageKey key = work.key();
  key.direction = boundary.direction;
  key.cut = boundary.cut;
  return capture_.Offer(key, boundary.name, x);
}

absl::StatusOr<LossSums> LocalStage::Loss(const Work& work, const Tensor& logits,
                                          const Samples& samples, InFlight* in_flight) {
  const bool training = work.phase == PHASE_TRAIN;
  ASSIGN_OR_RETURN(LossSums sums,
                   SoftmaxCrossEntropy(logits, samples.labels, work.batch_size, backend_.ops.get(),
                                       training ? &in_flight->dlogits : nullptr));
  if (!std::isfinite(sums.loss)) {
    return absl::OutOfRangeError(absl::StrCat("stage ", spec_.stage, ": the loss is ", sums.loss,
                                              training ? " at step " : " at test batch ", work.step,
                                              " of epoch ", work.epoch));
  }
  return sums;
}

absl::Status LocalStage::Backward(const Work& work) {
  const std::unique_ptr<InFlight> in_flight = std::move(in_flight_[work.microbatch]);
  Tensor dy;
  if (spec_.last()) {
    dy = std::move(in_flight->dlogits);
  } else {
    ScopedTimer timer(Slot(&activity_, Activity::kReceiveWait));
    BoundaryReceiver::Expected expected;
    expected.key = work.key();
    expected.batch = work.samples;
    expected.compressed = Compresses(spec_, work, downstream_.receiver->spec());
    expected.sample_digest = in_flight->sample_digest;
    ASSIGN_OR_RETURN(auto received, downstream_.receiver->Receive(expected, work.deadline));
    dy = std::move(received.tensor);
  }
  for (size_t i = segments_.size(); i-- > 0;) {
    {
      ScopedTimer timer(Slot(&activity_, Activity::kBackward));
      ASSIGN_OR_RETURN(dy, segments_[i]->Backward(dy, &in_flight->saved[i]));
      RETURN_IF_ERROR(FinishCompute());
    }
    if (i == 0) break;
    ASSIGN_OR_RETURN(dy, Cross(&inner_cuts_[i - 1], work, /*gradient=*/true,
                               in_flight->sample_digest, std::move(dy)));
  }
  if (spec_.first()) return absl::OkStatus();
  RETURN_IF_ERROR(OfferToCapture(work, upstream_.sender->spec(), dy));
  const bool compress = Compresses(spec_, work, upstream_.sender->spec());
  return upstream_.sender->Send(work.key(), in_flight->sample_digest, compress, std::move(dy));
}

absl::Status LocalStage::ClearGradients() {
  for (const auto& segment : segments_) RETURN_IF_ERROR(segment->ClearGradients());
  return absl::OkStatus();
}

absl::Status LocalStage::ImportParameters(std::string_view file) {
  RETURN_IF_ERROR(ReadParameters(file, parameters()));
  for (const auto& segment : segments_) RETURN_IF_ERROR(segment->ParametersChanged());
  return absl::OkStatus();
}

absl::Status LocalStage::Update(double lr) {
  ScopedTimer timer(Slot(&activity_, Activity::kOptimizer));
  for (size_t i = 0; i < segments_.size(); ++i) {
    RETURN_IF_ERROR(optimizers_[i]->Step(lr));
    RETURN_IF_ERROR(segments_[i]->ParametersChanged());
  }
  return FinishCompute();
}

absl::Status LocalStage::FinishEvaluation(Work last_batch) {
  if (spec_.last()) return absl::OkStatus();
  ScopedTimer timer(Slot(&activity_, Activity::kSendWait));
  MessageKey key = last_batch.key();
  const uint64_t batches = key.step;
  key.step = batches > kEvaluationWindow ? batches - kEvaluationWindow + 1 : 1;
  for (; key.step <= batches; ++key.step) {
    RETURN_IF_ERROR(AwaitAcknowledgement(key));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::FlushSends(SteadyTime deadline) {
  ScopedTimer timer(Slot(&activity_, Activity::kSendWait));
  if (upstream_.sender) RETURN_IF_ERROR(upstream_.sender->Flush(deadline));
  if (downstream_.sender) RETURN_IF_ERROR(downstream_.sender->Flush(deadline));
  return absl::OkStatus();
}

void LocalStage::Abandon() {
  for (auto& in_flight : in_flight_) in_flight.reset();
  for (InnerCut& cut : inner_cuts_) {
    cut.upstream_support->Clear();
    cut.downstream_support->Clear();
  }
}

std::vector<const Parameter*> LocalStage::parameters() const {
  std::vector<const Parameter*> all;
  for (const auto& segment : segments_) {
    for (const Parameter& parameter : segment->parameters()) all.push_back(&parameter);
  }
  return all;
}

std::vector<LocalStage::End> LocalStage::ends() const {
  absl::MutexLock lock(&neighbours_mutex_);
  std::vector<End> ends;
  const auto add = [&ends](const auto& both) {
    if (both.sender) ends.push_back({both.sender.get(), nullptr});
    if (both.receiver) ends.push_back({nullptr, both.receiver.get()});
  };
  add(upstream_);
  for (const InnerCut& cut : inner_cuts_) {
    add(cut.activations);
    add(cut.gradients);
  }
  add(downstream_);
  return ends;
}

}  // namespace thinwire
