#include "stage_server/stage/local_stage.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/digest.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "models/part_rounds.h"
#include "models/pieces.h"
#include "nn/gradient_norm.h"
#include "nn/parameters.h"
#include "stage_server/stage/batch_parts.h"
#include "stage_server/stage/safetensors.h"
#include "stage_server/swap/file_place.h"
#include "stage_server/swap/host_place.h"

namespace thinwire {
namespace {

// Returns whether any block of a segment has what it keeps wait elsewhere.
bool Swaps(const StageSpec& spec, int segment) {
  const BlockRange blocks = SegmentBlocks(spec.model, spec.cuts, segment);
  return std::any_of(spec.keeping.begin() + blocks.first, spec.keeping.begin() + blocks.last,
                     [](const BlockKeeping& keeping) { return keeping.swap; });
}

// Makes the place where that waits. Errors name the stage.
absl::StatusOr<std::unique_ptr<SwapPlace>> NewSwapPlace(const StageSpec& spec,
                                                        const Backend& backend) {
  if (spec.swap == SwapTo::kDisk) {
    if (backend.swap.folder.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("pipeline.swap: disk, and the server of stage ", spec.stage,
                       " has no folder for it, want one with --swap_dir"));
    }
    return Annotated(NewFilePlace(backend.device, backend.swap),
                     absl::StrCat("stage ", spec.stage));
  }
  if (!backend.device->is_host()) return NewHostPlace();
  return absl::InvalidArgumentError(absl::StrCat("pipeline.swap: host, and stage ", spec.stage,
                                                 " computes on ", backend.device->name(),
                                                 ", where all is on the host already: want disk"));
}

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

// Returns the layers in the stage's blocks at which parts exchange messages.
std::vector<StageSum> SumsOfStage(const StageSpec& spec) {
  std::vector<StageSum> sums;
  uint32_t number = 0;
  int with_sums = 0;
  for (int segment = 0; segment <= static_cast<int>(spec.cuts.size()); ++segment) {
    const BlockRange blocks = SegmentBlocks(spec.model, spec.cuts, segment);
    for (int block = blocks.first; block < blocks.last; ++block) {
      const std::vector<const LayerSpec*> of_block = LayersWithRounds(spec.model.blocks[block]);
      for (const LayerSpec* sum : of_block) {
        const StageSum one{*sum, number++, with_sums >= spec.sums.exact_blocks};
        if (spec.placement.StageOf(segment) == spec.stage) sums.push_back(one);
      }
      with_sums += of_block.empty() ? 0 : 1;
    }
  }
  return sums;
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

// Returns what carriers tell each other of a step: for each replica its loss, with the first one
// the labels of all that are carried here, and how many of these were correct.
std::vector<double> NumbersOf(const StepReport& report) {
  std::vector<double> numbers;
  for (const double loss : report.replica_losses()) {
    const bool is_first = numbers.empty();
    numbers.push_back(loss);
    numbers.push_back(is_first ? static_cast<double>(report.labels()) : 0);
    numbers.push_back(is_first ? report.correct() : 0);
  }
  return numbers;
}

// Makes the report one of all replicas, whose numbers these are.
void TakeNumbers(const std::vector<double>& numbers, StepReport* report) {
  double loss = 0, labels = 0, correct = 0;
  report->clear_replica_losses();
  for (size_t i = 0; i < numbers.size(); i += ReplicaAverager::kReadyNumbers) {
    report->add_replica_losses(numbers[i]);
    loss += numbers[i];
    labels += numbers[i + 1];
    correct += numbers[i + 2];
  }
  report->set_loss(labels == 0 ? 0 : loss / labels);
  report->set_labels(static_cast<uint64_t>(labels));
  if (report->has_correct()) report->set_correct(static_cast<uint32_t>(correct));
  report->set_is_of_all(true);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStage>> LocalStage::Build(const StageSpec& spec,
                                                              const Backend& backend) {
  std::unique_ptr<LocalStage> stage(new LocalStage(spec, backend));
  RETURN_IF_ERROR(stage->BuildSums());
  RETURN_IF_ERROR(stage->BuildSwapper());
  const ModelChunk::Stage common{stage->spec_,      stage->backend_,      &stage->capture_,
                                 &stage->activity_, &stage->clock_,       stage->sums_.get(),
                                 &stage->stash_,    stage->swapper_.get()};
  for (int i = 0; i < spec.chunks(); ++i) {
    ASSIGN_OR_RETURN(auto chunk, ModelChunk::Build(common, i));
    stage->chunks_.push_back(std::move(chunk));
  }
  RETURN_IF_ERROR(stage->BuildInnerTies());
  RETURN_IF_ERROR(stage->BuildReplicas());
  // Another thread runs the actions.
  RETURN_IF_ERROR(ToStatus(backend.device->Finish()));
  return stage;
}

LocalStage::~LocalStage() { CloseLinks(absl::CancelledError("the stage ends")); }

absl::Status LocalStage::BuildInnerTies() {
  if (!spec_.has_tied_cut() || spec_.stages() > 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(InnerCut tied, NewInnerCut(spec_, spec_.tied_cut(), backend_, &capture_));
  embedding_.Add(StageSpec::kSameCarrier, std::move(tied.upstream));
  head_.Add(StageSpec::kSameCarrier, std::move(tied.downstream));
  return absl::OkStatus();
}

absl::Status LocalStage::BuildSums() {
  if (spec_.sums.parts == 1) return absl::OkStatus();
  SumOptions options;
  options.sums = spec_.sums;
  options.place = spec_.place();
  options.places = spec_.grid.parts;
  options.patience = spec_.patience;
  options.max_batch = spec_.batch_size;
  options.compute = spec_.compute;
  options.codec_seed = spec_.seeds.codec;
  options.error_every = spec_.error_every;
  options.run = spec_.run;
  options.generation = spec_.generation;
  options.trace = spec_.trace;
  options.device = backend_.device;
  options.ops = backend_.ops.get();
  options.kernels = KernelsOfWaiting(backend_);
  ASSIGN_OR_RETURN(sums_, SumExchange::New(options, SumsOfStage(spec_)));
  return absl::OkStatus();
}

absl::Status LocalStage::BuildSwapper() {
  bool swaps = false;
  for (int chunk = 0; chunk < spec_.chunks(); ++chunk) {
    const SegmentRange& segments = spec_.segments(chunk);
    for (int i = segments.first; i < segments.end; ++i) swaps = swaps || Swaps(spec_, i);
  }
  if (!swaps) return absl::OkStatus();
  ASSIGN_OR_RETURN(auto place, NewSwapPlace(spec_, backend_));
  swapper_ = std::make_unique<Swapper>(std::move(place), spec_.patience);
  return absl::OkStatus();
}

absl::Status LocalStage::BuildReplicas() {
  if (spec_.replicas.count == 1 && !spec_.replicas.trains_locally()) return absl::OkStatus();
  ExchangeOptions options;
  options.replicas = spec_.replicas;
  options.fragments = FragmentsOf(spec_);
  options.carrier = spec_.row();
  options.carriers = spec_.grid.replicas;
  options.deal = spec_.grid.deal;
  options.counts_all = spec_.place() == 0;
  options.patience = spec_.patience;
  options.run = spec_.run;
  options.generation = spec_.generation;
  options.codec_seed = spec_.seeds.codec;
  if (spec_.tied) options.tied = spec_.tied->name;
  // Local steps have few exchanges, so each is measured.
  const bool measures_all = spec_.replicas.trains_locally() && spec_.error_every > 0;
  options.error_every = measures_all ? 1 : spec_.error_every;
  options.device = backend_.device;
  options.ops = backend_.ops.get();
  options.kernels = KernelsOfWaiting(backend_);
  std::vector<ExchangedSegment> exchanged;
  for (int chunk = 0; chunk < spec_.chunks(); ++chunk) {
    int number = spec_.segments(chunk).first;
    for (const auto& segment : chunks_[chunk]->segments()) {
      ExchangedSegment& one = exchanged.emplace_back();
      one.segment = segment.get();
      if (spec_.grid.parts > 1) one.parameters = ParametersOfSegment(spec_, number);
      one.number = number++;
    }
  }
  ASSIGN_OR_RETURN(averager_, ReplicaAverager::New(options, exchanged));
  for (int row = 0; row < spec_.grid.replicas; ++row) {
    if (spec_.grid.Follows(row)) averager_->peers().SetFollows(row);
  }
  if (spec_.replicas.trains_locally()) {
    ASSIGN_OR_RETURN(local_, LocalReplicas::New(options, segments(), optimizers()));
  }
  if (!ContributesEarly()) return absl::OkStatus();
  for (const auto& chunk : chunks_) {
    chunk->OnGradients(
        [this](const Work& work, int segment) { return ContributeEarly(work, segment); });
  }
  return absl::OkStatus();
}

absl::Status LocalStage::Attach(const CutEndSpec& end, std::unique_ptr<Link> link) {
  ASSIGN_OR_RETURN(auto made, CutEnd::New(spec_, end, backend_, &capture_, std::move(link)));
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  // The run may have been stopped while its link was dialled.
  RETURN_IF_ERROR(closed_);
  CutEnds* const place = PlaceOf(end);
  if (place->Has(end.carrier)) {
    return absl::FailedPreconditionError(absl::StrCat("cut ", spec_.CutName(end.cut), ": stage ",
                                                      spec_.stage, " is connected there already"));
  }
  place->Add(end.carrier, std::move(made));
  return absl::OkStatus();
}

LocalStage::PeerPlace LocalStage::PeerPlaceOf(int carrier) const {
  const CarrierGrid& grid = spec_.grid;
  if (grid.RowOf(carrier) == spec_.row()) return {&sums_->peers(), grid.PlaceOf(carrier)};
  return {&averager_->peers(), grid.RowOf(carrier)};
}

int LocalStage::MessagesOfParts() const {
  // A machine is at most one sum behind. Then come the tensors of a checkpoint: of the model,
  // and what optimizers and replicas remember.
  constexpr int kMostTensors = 8;
  int tensors = 0;
  bool has_slices = false;
  for (const Parameter* parameter : parameters()) {
    tensors += parameter->spec.slice.is_of_part();
    has_slices = has_slices || !parameter->of_slices.empty();
  }
  // Each part sends a slice of its sums for each part.
  const int of_sum = has_slices ? spec_.sums.parts * spec_.sums.parts : spec_.sums.parts;
  return 2 * of_sum + kMostTensors * (1 + spec_.carried().size()) * tensors;
}

absl::StatusOr<LinkOptions> LocalStage::PeerLinkOptionsFor(int carrier) const {
  LinkOptions options;
  options.peer = PeerName(spec_, carrier);
  options.run = spec_.run;
  options.generation = spec_.generation;
  options.secret = spec_.link_secret;
  options.cut = kPeerCuts + static_cast<uint32_t>(std::min(carrier, spec_.carrier));
  options.is_among_carriers = true;
  options.is_among_parts = spec_.grid.RowOf(carrier) == spec_.row();
  options.receives = DIRECTION_GRADIENT;
  if (options.is_among_parts) {
    options.name = kSums;
    options.max_payload_bytes = sums_->max_payload_bytes();
    uint64_t of_slice = 0;
    for (const Parameter* parameter : parameters()) {
      const uint64_t bytes = parameter->value.empty() ? 0 : parameter->value.bytes();
      options.max_payload_bytes = std::max(options.max_payload_bytes, bytes);
      of_slice += parameter->of_slices.empty() ? 0 : bytes;
    }
    options.max_payload_bytes = std::max(options.max_payload_bytes, of_slice);
    const uint64_t squares = AllParameters().size() * sizeof(double);
    options.max_payload_bytes = std::max(options.max_payload_bytes, squares);
    options.queue_capacity = MessagesOfParts();
  } else {
    options.name = kReplicas;
    options.max_payload_bytes = averager_->max_payload_bytes();
    const int steps_ahead = spec_.grid.Follows(spec_.row()) ? kMostStepsBehind : 2;
    options.queue_capacity = steps_ahead * static_cast<int>(averager_->messages_of_step());
  }
  options.on_frame = [patience = spec_.patience] { patience->Advance(); };
  options.host = backend_.device->host();
  options.on_note = backend_.on_note;
  return options;
}

absl::Status LocalStage::AttachPeer(int carrier, std::unique_ptr<Link> link) {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  RETURN_IF_ERROR(closed_);
  const PeerPlace place = PeerPlaceOf(carrier);
  if (place.peers->IsAttached(place.index)) {
    return absl::FailedPreconditionError(absl::StrCat("stage ", spec_.stage, " is connected to ",
                                                      PeerName(spec_, carrier), " already"));
  }
  place.peers->Attach(place.index, std::move(link));
  return absl::OkStatus();
}

CutEnds* LocalStage::PlaceOf(const CutEndSpec& end) {
  if (end.cut == spec_.tied_cut()) {
    return end.sends == DIRECTION_ACTIVATION ? &embedding_ : &head_;
  }
  for (const auto& chunk : chunks_) {
    if (CutEnds* const place = chunk->PlaceOf(end)) return place;
  }
  assert(false);  // the stage has no such end
  return nullptr;
}

absl::Status LocalStage::CheckConnected() {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  for (const NeighbourEnd& neighbour : NeighbourEnds(spec_)) {
    if (PlaceOf(neighbour.end)->Has(neighbour.end.carrier)) continue;
    const bool is_tied = neighbour.end.cut == spec_.tied_cut();
    return absl::FailedPreconditionError(absl::StrCat("stage ", spec_.stage,
                                                      " is not connected to ", neighbour.end.peer,
                                                      is_tied ? " for the tied weight" : ""));
  }
  for (int carrier = 0; carrier < spec_.grid.count(); ++carrier) {
    if (!spec_.grid.AreJoined(carrier, spec_.carrier)) continue;
    const PeerPlace place = PeerPlaceOf(carrier);
    if (place.peers->IsAttached(place.index)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("stage ", spec_.stage, " is not connected to ", PeerName(spec_, carrier)));
  }
  return absl::OkStatus();
}

std::vector<CutEnd*> LocalStage::OuterEnds() const {
  std::vector<CutEnd*> ends;
  for (const auto& chunk : chunks_) {
    for (CutEnd* const end : chunk->outer_ends()) ends.push_back(end);
  }
  for (const CutEnds* const tied : {&embedding_, &head_}) {
    for (CutEnd* const end : tied->all()) ends.push_back(end);
  }
  return ends;
}

void LocalStage::CloseLinks(const absl::Status& reason) {
  const std::lock_guard<std::mutex> lock(neighbours_mutex_);
  if (closed_.ok()) closed_ = reason;
  for (CutEnd* const end : OuterEnds()) end->receiver().Stop(reason);
  if (averager_) averager_->peers().Close(reason);
  if (sums_) sums_->peers().Close(reason);
}

absl::StatusOr<std::unique_ptr<Recalibration>> LocalStage::StartRecalibration(int chunk) {
  std::vector<Segment*> segments;
  for (const auto& segment : chunks_[chunk]->segments()) segments.push_back(segment.get());
  return Recalibration::Start(std::move(segments), backend_.device);
}

void LocalStage::StartEpoch(const EpochSpec& spec) {
  // Ends through which the same replicas' messages go share these.
  std::map<std::tuple<bool, int, int>, std::shared_ptr<const EpochRows>> all;
  const auto rows = [&](const BoundarySpec& boundary, const ReplicaRange& of) {
    const bool is_tied = static_cast<int>(boundary.cut) == spec_.tied_cut();
    std::shared_ptr<const EpochRows>& known = all[{is_tied, of.first, of.end}];
    if (known != nullptr) return known;
    const EpochSpec epoch = is_tied ? OfReplicas(TiedEpochOf(spec_, spec), of, /*messages=*/1)
                                    : OfReplicas(spec, of, spec_.microbatches);
    return known = std::make_shared<const EpochRows>(epoch, !is_tied && NeedsSampleIds(spec_));
  };
  if (averager_) averager_->StartEpoch(spec);
  for (const End& end : ends()) {
    if (end.sender) end.sender->StartEpoch(rows(end.sender->spec(), end.replicas));
    if (end.receiver) end.receiver->StartEpoch(rows(end.receiver->spec(), end.replicas));
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

absl::Status LocalStage::GatherParts(std::vector<Parameter>* tensors) const {
  return spec_.grid.parts == 1 ? absl::OkStatus()
                               : sums_->gather().ToFirst(AllParameters(), tensors);
}

std::vector<ParameterSpec> LocalStage::AllParameters() const {
  std::vector<ParameterSpec> all;
  for (int chunk = 0; chunk < spec_.chunks(); ++chunk) {
    for (int segment = spec_.segments(chunk).first; segment < spec_.segments(chunk).end;
         ++segment) {
      for (ParameterSpec& one : ParametersOfSegment(spec_, segment)) all.push_back(std::move(one));
    }
  }
  return all;
}

absl::Status LocalStage::ImportParameters(
    const std::vector<std::string>& kept,
    const std::function<bool(std::string_view* piece)>& next) {
  return ReplaceParameters(kept, [&next](const Sink& sink) {
    absl::Status status;
    for (std::string_view piece; status.ok() && next(&piece);) status = sink(piece);
    return status;
  });
}

absl::Status LocalStage::ReplaceParameters(const std::vector<std::string>& kept,
                                           const std::function<absl::Status(const Sink&)>& write) {
  std::vector<const Parameter*> replaced = parameters();
  replaced.erase(std::remove_if(replaced.begin(), replaced.end(),
                                [&](const Parameter* parameter) {
                                  return std::find(kept.begin(), kept.end(),
                                                   parameter->spec.name) != kept.end();
                                }),
                 replaced.end());
  ParameterReader reader(replaced, AllParameters());
  absl::Status status = write([&reader](std::string_view piece) { return reader.Append(piece); });
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
  std::vector<GradientCopy> copies;
  const auto add = [&](const CutEnds& ends, Segment* segment, const std::string& name) {
    if (ends.empty()) return;
    copies.push_back({&ends.Of(work.replica), FindParameter(segment->parameters(), name)});
  };
  add(embedding_, segments().front(), spec_.tied->name);
  add(head_, segments().back(), spec_.tied->copy);
  return SumGradients(work, copies);
}

absl::Status LocalStage::SumBasisGradients(const Work& work) {
  std::vector<GradientCopy> copies;
  for (const auto& chunk : chunks_) {
    for (const GradientCopy& copy : chunk->BasisCopies(work.replica)) copies.push_back(copy);
  }
  return SumGradients(work, copies);
}

absl::Status LocalStage::SumGradients(const Work& work, const std::vector<GradientCopy>& copies) {
  // All send before any receives: where both copies are in this process, the first to receive would
  // wait for a message that its own thread has yet to send.
  std::vector<Tensor> sent;
  for (const GradientCopy& copy : copies) {
    ASSIGN_OR_RETURN(sent.emplace_back(), copy.end->SendGradient(work, copy.weight->gradient));
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    CutEnd& end = *copies[i].end;
    ScopedTimer timer(&activity_.waits[end.cut()].receive, end.StepWaitSlice(work));
    ASSIGN_OR_RETURN(const Tensor received, end.ReceiveGradient(work));
    // Both summands are as a codec leaves them, so the sum is the same number at both ends.
    const TensorView sum = copies[i].weight->gradient.view();
    RETURN_IF_ERROR(ToStatus(backend_.ops->Add(sent[i].view(), received.view(), sum)));
    RETURN_IF_ERROR(ToStatus(backend_.device->Finish()));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::StartStep(const Work& work) {
  return averager_->StartStep(ExchangeOf(spec_, work));
}

bool LocalStage::ContributesEarly() const {
  return spec_.stages() == 1 && spec_.grid.replicas > 1 && !spec_.replicas.trains_locally();
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
  ASSIGN_OR_RETURN(const double sum, PassSquaresOn(work));
  return PassSquaresBack(work, sum);
}

absl::StatusOr<double> LocalStage::PassSquaresOn(const Work& work) {
  double sum = 0;
  for (const auto& chunk : chunks_) {
    ASSIGN_OR_RETURN(sum, chunk->PassSquaresOn(work));
  }
  return sum;
}

absl::StatusOr<double> LocalStage::PassSquaresBack(const Work& work, double sum) {
  for (size_t i = chunks_.size(); i-- > 0;) {
    ASSIGN_OR_RETURN(sum, chunks_[i]->PassSquaresBack(work, sum));
  }
  return sum;
}

// The sum of squares has come through all stages of this pipeline when it reaches the last, so that
// all of them have their averages. It goes back once all pipelines say so.
absl::StatusOr<double> LocalStage::AgreeOnUpdate(const Work& work, StepReport* report) {
  ASSIGN_OR_RETURN(const double sum, PassSquaresOn(work));
  if (spec_.last()) {
    ASSIGN_OR_RETURN(const std::vector<double> numbers,
                     averager_->ShareReadiness(ExchangeOf(spec_, work), NumbersOf(*report)));
    TakeNumbers(numbers, report);
    // Once another stage has updated, these messages must come through whatever becomes of this
    // one.
    RETURN_IF_ERROR(averager_->peers().Flush());
  }
  return PassSquaresBack(work, sum);
}

absl::Status LocalStage::UpdateAgreed(const Work& work, double lr, double squares) {
  const double clip_norm = spec_.optimizer.clip_norm;
  return UpdateScaled(
      work, lr, clip_norm == 0 ? GradientScale() : GradientScale(ClipScale(squares, clip_norm)));
}

absl::StatusOr<LossSums> LocalStage::TakeLosses(const Work& work) {
  LossSums of_last;  // no other chunk has any
  for (const auto& chunk : chunks_) {
    ASSIGN_OR_RETURN(of_last, chunk->TakeLosses(work));
  }
  return of_last;
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
  RETURN_IF_ERROR(UpdateScaled(work, lr, scale));
  return chunks_.front()->CheckClip(work);
}

absl::Status LocalStage::UpdateScaled(const Work& work, double lr, const GradientScale& scale) {
  for (const auto& chunk : chunks_) RETURN_IF_ERROR(chunk->Update(work, lr, scale));
  RETURN_IF_ERROR(ToStatus(backend_.device->Finish()));
  return clock_.Settle();
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
                                                        absl::Span<const int32_t> ids) {
  if (work.first_position == 0) text_ = std::make_unique<Text>();
  Pass pass(Mode::kEvaluate, work.step);
  pass.cache = &text_->cache;
  pass.first_position = work.first_position;
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
  text_->positions = work.first_position + positions;
  return logits;
}

uint64_t LocalStage::EvaluationWireBytes() const {
  uint64_t bytes = 0;
  if (sums_) {
    for (const Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      bytes += sums_->counts(direction).all().evaluate.wire_bytes;
    }
  }
  if (spec_.place() > 0) return bytes;  // the first of the row counts what crosses cuts
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
  for (CutEnd* const end : OuterEnds()) {
    ScopedTimer timer(&activity_.waits[end->cut()].send, {});
    RETURN_IF_ERROR(end->sender().Flush(deadline));
  }
  if (sums_) RETURN_IF_ERROR(sums_->peers().Flush());
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
  for (const CutEnds* const tied : {&embedding_, &head_}) {
    for (CutEnd* const end : tied->all()) {
      ends.push_back({&end->sender(), nullptr, end->replicas()});
      ends.push_back({nullptr, &end->receiver(), end->replicas()});
    }
  }
  return ends;
}

}  // namespace thinwire
