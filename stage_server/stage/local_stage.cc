#include "stage_server/stage/local_stage.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "models/pieces.h"
#include "nn/gradient_norm.h"
#include "nn/parameters.h"
#include "stage_server/stage/batch_parts.h"
#include "stage_server/stage/safetensors.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

// Returns "stage 1 of carrier 2".
std::string PeerName(const StageSpec& spec, int carrier) {
  return absl::StrCat("stage ", spec.stage, " of carrier ", carrier);
}

// Returns the fragments of the model's parameters, which are the same for all its stages.
std::map<std::string, int> FragmentsOf(const StageSpec& spec) {
  std::vector<ParameterSpec> all;
  for (const BlockSpec& block : spec.model.blocks) {
    for (ParameterSpec& parameter : Parameters(block)) all.push_back(std::move(parameter));
  }
  return FragmentsOf(all, spec.replicas.fragments);
}

// Returns the exchange at the end of the step of `work`. All replicas have had samples in a round
// of local steps.
ExchangeStep ExchangeOf(const StageSpec& spec, const Work& work) {
  if (spec.replicas.trains_locally()) {
    return {work.epoch, work.step, work.compress, spec.replicas.count, work.fragment};
  }
  const int with_samples = ReplicasWithSamples(spec, work.batch_size);
  return {work.epoch, work.step, work.compress, with_samples};
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStage>> LocalStage::Build(const StageSpec& spec,
                                                              const Backend& backend) {
  std::unique_ptr<LocalStage> stage(new LocalStage(spec, backend));
  const ModelChunk::Stage common{stage->spec_, stage->backend_, &stage->capture_, &stage->activity_,
                                 &stage->clock_};
  for (int i = 0; i < spec.chunks(); ++i) {
    ASSIGN_OR_RETURN(auto chunk, ModelChunk::Build(common, i));
    stage->chunks_.push_back(std::move(chunk));
  }
  RETURN_IF_ERROR(stage->BuildInnerTies());
  RETURN_IF_ERROR(stage->BuildAverager());
  RETURN_IF_ERROR(stage->BuildLocalReplicas());
  return stage;
}

LocalStage::~LocalStage() { CloseLinks(absl::CancelledError("the stage ends")); }

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

absl::Status LocalStage::BuildAverager() {
  if (spec_.replicas.count == 1 && !spec_.replicas.trains_locally()) return absl::OkStatus();
  AveragerOptions options;
  options.replicas = spec_.replicas;
  options.fragments = FragmentsOf(spec_);
  options.carrier = spec_.carrier;
  options.carriers = spec_.carriers;
  options.patience = spec_.patience;
  options.run = spec_.run;
  options.generation = spec_.generation;
  options.codec_seed = spec_.codec_seed;
  if (spec_.tied) options.tied = spec_.tied->name;
  // Local steps have few exchanges, so each is measured.
  const bool measures_all = spec_.replicas.trains_locally() && spec_.error_every > 0;
  options.error_every = measures_all ? 1 : spec_.error_every;
  options.device = backend_.device;
  options.ops = backend_.ops.get();
  options.kernels = backend_.threaded_kernels ? backend_.threaded_kernels.get() : backend_.kernels;
  std::vector<ExchangedSegment> exchanged;
  for (int chunk = 0; chunk < spec_.chunks(); ++chunk) {
    int number = spec_.segments(chunk).first;
    for (const auto& segment : chunks_[chunk]->segments()) {
      exchanged.push_back({number++, segment.get()});
    }
  }
  ASSIGN_OR_RETURN(averager_, ReplicaAverager::New(options, exchanged));
  if (!ContributesEarly()) return absl::OkStatus();
  for (const auto& chunk : chunks_) {
    chunk->OnGradients(
        [this](const Work& work, int segment) { return ContributeEarly(work, segment); });
  }
  return absl::OkStatus();
}

absl::Status LocalStage::BuildLocalReplicas() {
  if (!spec_.replicas.trains_locally()) return absl::OkStatus();
  LocalReplicasOptions options;
  options.replicas = spec_.replicas;
  options.fragments = FragmentsOf(spec_);
  options.carried = spec_.carried();
  options.device = backend_.device;
  options.ops = backend_.ops.get();
  ASSIGN_OR_RETURN(local_, LocalReplicas::New(options, segments(), optimizers()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TiedCopy>> LocalStage::NewTiedCopy(const CutEndSpec& end,
                                                                  std::unique_ptr<Link> link) {
  const bool is_embedding = end.sends == DIRECTION_ACTIVATION;
  Segment& segment =
      is_embedding ? *chunks_.front()->segments().front() : *chunks_.back()->segments().back();
  const Parameter* const weight =
      FindParameter(segment.parameters(), is_embedding ? spec_.tied->name : spec_.tied->copy);
  return TiedCopy::New(spec_, end, backend_, weight, &capture_, std::move(link));
}

absl::Status LocalStage::Attach(const CutEndSpec& end, std::unique_ptr<Link> link) {
  const auto put = [this, &end](auto made, auto* place) -> absl::Status {
    const std::lock_guard<std::mutex> lock(neighbours_mutex_);
    // The run may have been stopped while its link was dialled.
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
  return put(std::move(made), PlaceOf(end));
}

absl::StatusOr<LinkOptions> LocalStage::PeerLinkOptionsFor(int carrier) const {
  LinkOptions options;
  options.name = kReplicas;
  options.peer = PeerName(spec_, carrier);
  options.run = spec_.run;
  options.generation = spec_.generation;
  options.secret = spec_.link_secret;
  options.cut = kPeerCuts + static_cast<uint32_t>(std::min(carrier, spec_.carrier));
  options.is_among_carriers = true;
  options.receives = DIRECTION_GRADIENT;
  options.max_payload_bytes = averager_->max_payload_bytes();
  // A peer may be a step ahead.
  options.queue_capacity = 2 * static_cast<int>(averager_->messages_of_step());
  options.on_frame = [patience = spec_.patience] { patience->Advance(); };
  options.host = backend_.device->host();
  options.on_note = backend_.on_note;
  return options;
}

absl::Status LocalStage::AttachPeer(int carrier, std::unique_ptr<Link> link) {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  RETURN_IF_ERROR(closed_);
  if (averager_->peers().IsAttached(carrier)) {
    return absl::FailedPreconditionError(absl::StrCat("stage ", spec_.stage, " is connected to ",
                                                      PeerName(spec_, carrier), " already"));
  }
  averager_->peers().Attach(carrier, std::move(link));
  return absl::OkStatus();
}

std::unique_ptr<CutEnd>* LocalStage::PlaceOf(const CutEndSpec& end) const {
  for (const auto& chunk : chunks_) {
    if (std::unique_ptr<CutEnd>* const place = chunk->PlaceOf(end)) return place;
  }
  assert(false);  // the stage has no such end
  return nullptr;
}

absl::Status LocalStage::CheckConnected() const {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  for (const NeighbourEnd& neighbour : NeighbourEnds(spec_)) {
    const bool is_tied = neighbour.end.cut == spec_.tied_cut();
    if (is_tied ? embedding_ || head_ : *PlaceOf(neighbour.end) != nullptr) continue;
    return absl::FailedPreconditionError(absl::StrCat("stage ", spec_.stage,
                                                      " is not connected to ", neighbour.end.peer,
                                                      is_tied ? " for the tied weight" : ""));
  }
  for (int carrier = 0; carrier < spec_.carriers; ++carrier) {
    if (spec_.carriers == 1 || averager_->peers().IsAttached(carrier)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("stage ", spec_.stage, " is not connected to ", PeerName(spec_, carrier)));
  }
  return absl::OkStatus();
}

void LocalStage::CloseLinks(const absl::Status& reason) {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  if (closed_.ok()) closed_ = reason;
  for (const auto& chunk : chunks_) chunk->CloseLinks(reason);
  if (embedding_) embedding_->end().receiver().Stop(reason);
  if (head_) head_->end().receiver().Stop(reason);
  if (averager_) averager_->peers().Close(reason);
}

absl::StatusOr<std::unique_ptr<Recalibration>> LocalStage::StartRecalibration(int chunk) {
  std::vector<Segment*> segments;
  for (const auto& segment : chunks_[chunk]->segments()) segments.push_back(segment.get());
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
  if (averager_) averager_->StartEpoch(spec);
  for (const End& end : ends()) {
    if (end.sender) end.sender->StartEpoch(rows(end.sender->spec()));
    if (end.receiver) end.receiver->StartEpoch(rows(end.receiver->spec()));
  }
}

absl::StatusOr<LossSums> LocalStage::Forward(const Work& work,
                                             const std::optional<Samples>& samples) {
  text_.reset();
  return chunks_[work.chunk]->Forward(work, samples);
}

absl::Status LocalStage::ClearGradients() {
  for (Segment* segment : segments()) RETURN_IF_ERROR(segment->ClearGradients());
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
  // After an error, too: some parameters may have been replaced.
  status.Update(ClearGradients());
  for (Segment* segment : segments()) status.Update(segment->ParametersChanged());
  if (local_) status.Update(local_->Share());
  text_.reset();  // its keys and values were those of other parameters
  return status;
}

absl::Status LocalStage::SumTiedGradients(const Work& work) {
  if (!spec_.tied) return absl::OkStatus();
  if (!spec_.has_tied_cut()) {
    const PlannedSlice slice = StepSlice(spec_, work, "backward tied");
    DeviceClock::Timer timer(&clock_, &activity_.segments[spec_.segments(0).first].backward,
                             &activity_.core_wait, slice);
    const absl::Span<Parameter> parameters = segments().front()->parameters();
    RETURN_IF_ERROR(AddTiedGradients(*FindParameter(parameters, spec_.tied->name),
                                     *FindParameter(parameters, spec_.tied->copy),
                                     backend_.ops.get()));
    return slice.trace != nullptr ? ToStatus(backend_.device->Finish()) : absl::OkStatus();
  }
  // Both send before either receives: where both are in this process, the first to receive would
  // wait for a message that its own thread has yet to send.
  if (embedding_) RETURN_IF_ERROR(embedding_->Send(work));
  if (head_) RETURN_IF_ERROR(head_->Send(work));
  ScopedTimer timer(&activity_.waits[spec_.tied_cut()].receive,
                    StepSlice(spec_, work, "receive_wait"));
  if (embedding_) RETURN_IF_ERROR(embedding_->Receive(work));
  if (head_) RETURN_IF_ERROR(head_->Receive(work));
  return ToStatus(backend_.device->Finish());
}

absl::Status LocalStage::SumBasisGradients(const Work& work) {
  std::vector<BasisCopy> copies;
  for (const auto& chunk : chunks_) {
    for (const BasisCopy& copy : chunk->BasisCopies()) copies.push_back(copy);
  }
  // All send before any receives, as both copies of a basis may be in this process.
  for (const BasisCopy& copy : copies) RETURN_IF_ERROR(copy.Send(work));
  for (const BasisCopy& copy : copies) {
    const CutEnd& end = *copy.end();
    ScopedTimer timer(&activity_.waits[end.cut()].receive, end.StepWaitSlice(work));
    RETURN_IF_ERROR(copy.Receive(work));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::StartStep(const Work& work) {
  return averager_->StartStep(ExchangeOf(spec_, work));
}

bool LocalStage::ContributesEarly() const {
  return spec_.stages() == 1 && spec_.carriers > 1 && !spec_.replicas.trains_locally();
}

absl::Status LocalStage::ContributeEarly(const Work& work, int segment) {
  const ScopedTimer slice(/*seconds=*/nullptr, StepSlice(spec_, work, "encode contribution"));
  return averager_->ContributeEarly(ExchangeOf(spec_, work), work.replica, segment);
}

absl::Status LocalStage::Contribute(const Work& work) {
  const ScopedTimer slice(/*seconds=*/nullptr, StepSlice(spec_, work, "encode contribution"));
  RETURN_IF_ERROR(averager_->Contribute(ExchangeOf(spec_, work), work.replica));
  return ClearGradients();
}

absl::Status LocalStage::TakeAverage(const Work& work) {
  const ScopedTimer slice(/*seconds=*/nullptr, StepSlice(spec_, work, "encode average"));
  return averager_->Finish(ExchangeOf(spec_, work));
}

absl::StatusOr<double> LocalStage::SumOfSquares(const Work& work) {
  double sum = 0;
  for (const auto& chunk : chunks_) {
    ASSIGN_OR_RETURN(sum, chunk->PassSquaresOn(work));
  }
  for (size_t i = chunks_.size(); i-- > 0;) {
    ASSIGN_OR_RETURN(sum, chunks_[i]->PassSquaresBack(work, sum));
  }
  return sum;
}

absl::StatusOr<LossSums> LocalStage::TakeLosses(const Work& work) {
  LossSums sums;
  for (const auto& chunk : chunks_) {
    ASSIGN_OR_RETURN(const LossSums of_chunk, chunk->TakeLosses(work));
    sums.loss += of_chunk.loss;
    sums.correct += of_chunk.correct;
    sums.counted += of_chunk.counted;
  }
  return sums;
}

absl::StatusOr<GradientScale> LocalStage::Clip(const Work& work) {
  GradientScale scale;
  if (spec_.optimizer.clip_norm == 0) return scale;
  ASSIGN_OR_RETURN(const bool on_device, chunks_.front()->ClipOnDevice(work, &scale));
  if (on_device) return scale;
  ASSIGN_OR_RETURN(const double squares, SumOfSquares(work));
  return GradientScale(ClipScale(squares, spec_.optimizer.clip_norm));
}

absl::Status LocalStage::Update(const Work& work, double lr) {
  ASSIGN_OR_RETURN(const GradientScale scale, Clip(work));
  for (const auto& chunk : chunks_) RETURN_IF_ERROR(chunk->Update(work, lr, scale));
  RETURN_IF_ERROR(ToStatus(backend_.device->Finish()));
  RETURN_IF_ERROR(clock_.Settle());
  return chunks_.front()->CheckClip(work);
}

void LocalStage::RestoreActivity(const ActivitySeconds& before) {
  clock_.Forget();
  activity_ = before;
}

absl::StatusOr<Tensor> LocalStage::IdsOf(absl::Span<const int32_t> ids) const {
  const auto positions = static_cast<int64_t>(ids.size());
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(backend_.device, DType::kI32, {1, positions}));
  RETURN_IF_ERROR(ToStatus(backend_.device->CopyFromHost(x.data(), ids.data(), x.bytes())));
  return x;
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
  if (ReadsInputs(spec_)) {
    ASSIGN_OR_RETURN(pass.ids, IdsOf(ids));
  }
  const auto positions = static_cast<int64_t>(ids.size());
  std::vector<float> logits;
  for (const auto& chunk : chunks_) {
    ASSIGN_OR_RETURN(logits, chunk->Generate(work, pass, positions, ids_digest.value()));
  }
  text_->positions = first_position + positions;
  return logits;
}

uint64_t LocalStage::EvaluationWireBytes() const {
  uint64_t bytes = 0;
  for (const End& end : ends()) {
    if (end.sender) bytes += end.sender->statistics().evaluate.wire_bytes;
  }
  return bytes;
}

absl::Status LocalStage::FinishEvaluation(const Work& last_batch) {
  for (const auto& chunk : chunks_) RETURN_IF_ERROR(chunk->FinishEvaluation(last_batch));
  return absl::OkStatus();
}

absl::Status LocalStage::FlushSends(SteadyTime deadline) {
  for (const auto& chunk : chunks_) RETURN_IF_ERROR(chunk->FlushSends(deadline));
  for (TiedCopy* copy : {embedding_.get(), head_.get()}) {
    if (copy == nullptr) continue;
    ScopedTimer timer(&activity_.waits[spec_.tied_cut()].send, {});
    RETURN_IF_ERROR(copy->end().sender().Flush(deadline));
  }
  return averager_ ? averager_->peers().Flush() : absl::OkStatus();
}

void LocalStage::Abandon() {
  for (const auto& chunk : chunks_) chunk->Abandon();
  clock_.Forget();
}

std::vector<Segment*> LocalStage::segments() const {
  std::vector<Segment*> all;
  for (const auto& chunk : chunks_) {
    for (const auto& segment : chunk->segments()) all.push_back(segment.get());
  }
  return all;
}

std::vector<const Parameter*> LocalStage::parameters() const {
  std::vector<const Parameter*> all;
  for (Segment* segment : segments()) {
    for (const Parameter& parameter : segment->parameters()) all.push_back(&parameter);
  }
  return all;
}

std::vector<Optimizer*> LocalStage::optimizers() const {
  std::vector<Optimizer*> all;
  for (const auto& chunk : chunks_) {
    for (const auto& optimizer : chunk->optimizers()) all.push_back(optimizer.get());
  }
  return all;
}

std::vector<LocalStage::End> LocalStage::ends() const {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  std::vector<End> ends;
  for (const auto& chunk : chunks_) chunk->AppendEnds(&ends);
  for (TiedCopy* copy : {embedding_.get(), head_.get()}) {
    if (copy == nullptr) continue;
    ends.push_back({&copy->end().sender(), nullptr});
    ends.push_back({nullptr, &copy->end().receiver()});
  }
  return ends;
}

}  // namespace thinwire
