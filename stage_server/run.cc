#include "stage_server/run.h"

#include <malloc.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/memory_errors.h"
#include "base/resources.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "config/kept.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "stage_server/allowed_paths.h"
#include "stage_server/initial_folder.h"
#include "stage_server/memory_need.h"
#include "stage_server/peer_state.h"
#include "stage_server/read_within.h"
#include "stage_server/run_report.h"
#include "stage_server/stage/safetensors.h"
#include "tensor/cpu/device.h"
#include "transport/dial.h"

namespace thinwire {
namespace {

constexpr absl::Duration kReportEvery = absl::Seconds(1);
constexpr size_t kPieceBytes = size_t{1} << 20;
// Size of the pieces that other carriers read: little is under way when others want their line.
constexpr size_t kStatePieceBytes = size_t{256} << 10;
// Slices that a trace holds, 3 MB: enough for kReportEvery. A microbatch has about a dozen.
constexpr size_t kTraceSlices = size_t{1} << 15;

uint64_t RunDigest(const Lease& lease) {
  Digest digest;
  digest.Add(lease.run().data(), lease.run().size());
  return digest.value();
}

absl::StatusOr<std::shared_ptr<StepTrace>> NewTrace(const TraceSteps& steps) {
  if (steps.first() >= 1 && steps.first() <= steps.last()) {
    return std::make_shared<StepTrace>(steps.first(), steps.last(), kTraceSlices);
  }
  return absl::InvalidArgumentError(absl::StrCat("trace: steps ", steps.first(), " to ",
                                                 steps.last(),
                                                 ", want steps from 1 in ascending order"));
}

// Returns null, and says why if a GPU cannot be recorded, where there is no trace of a device.
std::unique_ptr<DeviceTrace> NewDeviceTrace(const Backend& backend, const TraceSteps& steps) {
  if (backend.plugin == nullptr) return nullptr;
  ActivityRecorder* recorder = nullptr;
  const Error error = backend.plugin->NewActivityRecorder(DeviceTrace::kMostSlices, &recorder);
  if (error.ok()) {
    return std::make_unique<DeviceTrace>(std::unique_ptr<ActivityRecorder>(recorder), steps,
                                         backend.on_trace_note);
  }
  backend.on_trace_note(absl::StrCat("the trace goes without the GPU's work: ", error.message));
  return nullptr;
}

absl::Status SetDeal(const ConfigureRequest& request, StageSpec* spec) {
  spec->grid.deal = {request.deal().begin(), request.deal().end()};
  if (spec->grid.deal.empty()) return absl::OkStatus();
  const uint64_t all = std::accumulate(request.deal().begin(), request.deal().end(), uint64_t{0});
  // Carriers of no replica come behind all others.
  const auto none = std::find(request.deal().begin(), request.deal().end(), 0U);
  const bool are_in_order = std::all_of(none, request.deal().end(), [](auto n) { return n == 0; });
  const auto replicas = static_cast<uint64_t>(spec->replicas.count);
  if (request.deal_size() == spec->grid.replicas && all == replicas && are_in_order) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("deal: ", absl::StrJoin(request.deal(), ", "), ", want ", spec->grid.replicas,
                   " numbers, zeros the last, that add up to ", replicas));
}

// Takes the numbers of machines of all stages, which `carriers` of this stage must be among.
absl::Status SetGrids(const ConfigureRequest& request, StageSpec* spec) {
  const auto& numbers = request.stage_carriers();
  if (numbers.empty()) return absl::OkStatus();
  const bool are_all = numbers.size() == spec->stages() && !absl::c_linear_search(numbers, 0U);
  const bool is_own = are_all && static_cast<int>(numbers[spec->stage]) == spec->grid.count();
  const bool is_divided = PartsOf(request.experiment()) > 1;
  if (!is_own || is_divided || !spec->grid.deal.empty() ||
      *absl::c_max_element(numbers) > uint32_t{kMostCarriers}) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage_carriers: ", absl::StrJoin(numbers, ", "), ", want one for each of ",
                     spec->stages(), " stages, ", spec->grid.count(),
                     " for this one, with neither a deal nor tensor-parallel parts"));
  }
  for (const uint32_t carriers : numbers) {
    ASSIGN_OR_RETURN(spec->grids.emplace_back(),
                     GridOf(request.experiment(), static_cast<int>(carriers)));
  }
  return absl::OkStatus();
}

absl::Status SetCarrier(const ConfigureRequest& request, StageSpec* spec) {
  const auto carriers = static_cast<int>(std::max(1U, request.carriers()));
  ASSIGN_OR_RETURN(spec->grid, GridOf(request.experiment(), carriers));
  if (request.carrier() >= static_cast<uint32_t>(carriers)) {
    return absl::InvalidArgumentError(absl::StrCat("carrier ", request.carrier(), " of ", carriers,
                                                   ", want one of them, from 0"));
  }
  spec->carrier = static_cast<int>(request.carrier());
  RETURN_IF_ERROR(SetDeal(request, spec));
  return SetGrids(request, spec);
}

void FillDevice(const Backend& backend, DeviceInfo* device) {
  device->set_name(backend.device->name());
  device->set_model(backend.description.name);
  device->set_libraries(backend.description.libraries);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageRun>> StageRun::New(const ConfigureRequest& request,
                                                        const Backend& backend, const Kept& kept,
                                                        RunData* read, BoundaryService* boundaries,
                                                        ConfigureResponse* response) {
  if (request.link_secret().size() < kMinSecretBytes) {
    return absl::InvalidArgumentError(absl::StrCat("link_secret: ", request.link_secret().size(),
                                                   " bytes, want at least ", kMinSecretBytes));
  }
  std::unique_ptr<StageRun> run(new StageRun(request, backend, boundaries->security()));
  ASSIGN_OR_RETURN(run->spec_, StageSpecFrom(request.experiment(), request.stage()));
  RETURN_IF_ERROR(SetCarrier(request, &run->spec_));
  run->spec_.begins_anew = !request.has_standing();
  run->spec_.run = RunDigest(request.lease());
  run->spec_.generation = request.lease().generation();
  run->spec_.link_secret = request.link_secret();
  if (request.has_trace()) {
    ASSIGN_OR_RETURN(run->spec_.trace, NewTrace(request.trace()));
    run->device_trace_ = NewDeviceTrace(backend, request.trace());
  }
  RETURN_IF_ERROR(ToStatus(backend.ops->CheckComputeType(run->spec_.compute)));
  FillDevice(backend, response->mutable_device());
  if (backend.device == CpuDevice()) RETURN_IF_ERROR(CheckFits(run->spec_, AvailableMemoryBytes()));
  RETURN_IF_ERROR(run->LoadFeed(request, read, response));
  ASSIGN_OR_RETURN(const auto limit, MemoryLimitFrom(request.experiment()));
  run->spec_.memory = std::make_shared<MemoryMeter>(
      backend.device, limit ? limit->bytes : std::optional<uint64_t>());
  // The thread that will run the segments builds them, too.
  run->thread_ = std::thread([raw = run.get()] { raw->ExecutorLoop(); });
  RETURN_IF_ERROR(run->OnExecutor([&]() -> absl::Status {
    ASSIGN_OR_RETURN(run->stage_, LocalStage::Build(run->spec_, backend));
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(const LrScheduleSpec lr, LrScheduleFrom(request.experiment()));
  run->executor_ =
      std::make_unique<Executor>(run->stage_.get(), run->feed_ ? &*run->feed_ : nullptr, lr);
  if (kept) RETURN_IF_ERROR(run->TakeKept(request.standing(), *kept));
  response->set_is_kept(kept.has_value());
  // From here on the stage before may dial and send: what takes its messages is there.
  RETURN_IF_ERROR(run->Listen(boundaries));
  int64_t trainable = 0;
  for (const ParameterSpec& parameter : run->stage_->AllParameters()) {
    const bool counts = parameter.is_trained() && parameter.tied_to.empty();
    if (counts) trainable += parameter.shape.elements();
  }
  response->set_parameters(static_cast<uint64_t>(trainable));
  return run;
}

void StageRun::TrimDevice::operator()(Device* device) const {
  device->Trim();
  malloc_trim(0);  // returns the host's freed memory to the system
}

StageRun::~StageRun() {
  // Ends the waits of a task that is under way, so that the thread comes back to its loop.
  if (executor_) executor_->Stop(absl::CancelledError("the run was released"));
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::Status StageRun::LoadFeed(const ConfigureRequest& request, RunData* read,
                                ConfigureResponse* response) {
  if (generates_ || !ReadsSamples(spec_)) {
    read->Forget();  // what another stage has read here
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const DataOptions options, DataOptionsFrom(request.experiment().data()));
  ASSIGN_OR_RETURN(data_, read->Of(subject_.run, request.experiment().data(), [&] {
    return ReadWithin<DataSplits>(kReadingPatience, DataNames(request.experiment()),
                                  [options] { return LoadData(options); });
  }));
  ASSIGN_OR_RETURN(const AugmentKind augment, AugmentFrom(request.experiment()));
  FeedSpec feed;
  feed.shuffle = {spec_.shuffle, spec_.seeds.data, spec_.batch_size};
  feed.augment = augment;
  feed.compute = spec_.compute;
  feed.inputs = ReadsInputs(spec_);
  feed.labels = spec_.last();
  feed_.emplace(feed, data_.get(), backend_);
  response->set_train_digest(data_->train->digest());
  response->set_test_digest(data_->test->digest());
  response->set_train_samples(data_->train->size());
  response->set_test_samples(data_->test->size());
  return absl::OkStatus();
}

absl::Status StageRun::Listen(BoundaryService* boundaries) {
  for (const NeighbourEnd& neighbour : NeighbourEnds(spec_)) {
    if (neighbour.end.sends == DIRECTION_ACTIVATION) continue;
    ASSIGN_OR_RETURN(const LinkOptions options, stage_->LinkOptionsFor(neighbour.end));
    ASSIGN_OR_RETURN(auto link, boundaries->Listen(options));
    RETURN_IF_ERROR(stage_->Attach(neighbour.end, std::move(link)));
  }
  for (int carrier = 0; carrier < spec_.carrier; ++carrier) {
    if (!spec_.grid.AreJoined(carrier, spec_.carrier)) continue;
    ASSIGN_OR_RETURN(const LinkOptions options, stage_->PeerLinkOptionsFor(carrier));
    ASSIGN_OR_RETURN(auto link, boundaries->Listen(options));
    RETURN_IF_ERROR(stage_->AttachPeer(carrier, std::move(link)));
  }
  return absl::OkStatus();
}

absl::Status StageRun::Dial(const CutEndSpec& end, const std::string& target) {
  ASSIGN_OR_RETURN(const LinkOptions options, stage_->LinkOptionsFor(end));
  ASSIGN_OR_RETURN(auto link, DialLink(target, options, security_, spec_.patience->Deadline(),
                                       [this] { return executor_->Stopped(); }));
  return OnExecutor([&] { return stage_->Attach(end, std::move(link)); });
}

absl::Status StageRun::DialPeer(int carrier, const std::string& target) {
  ASSIGN_OR_RETURN(LinkOptions options, stage_->PeerLinkOptionsFor(carrier));
  absl::StrAppend(&options.peer, " (", target, ")");
  ASSIGN_OR_RETURN(auto link, DialLink(target, options, security_, spec_.patience->Deadline(),
                                       [this] { return executor_->Stopped(); }));
  return OnExecutor([&] { return stage_->AttachPeer(carrier, std::move(link)); });
}

absl::Status StageRun::Connect(const ConnectRequest& request) {
  const int named = std::max(1, request.carriers_size());
  if (named != spec_.grid.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", spec_.stage, " is to connect with ", named, " carriers, want the ",
                     spec_.grid.count(), " that it was configured for"));
  }
  std::vector<NeighbourEnd> dialled;
  for (NeighbourEnd& neighbour : NeighbourEnds(spec_)) {
    if (neighbour.end.sends == DIRECTION_ACTIVATION) dialled.push_back(std::move(neighbour));
  }
  const bool dials = !dialled.empty() || spec_.carrier + 1 < spec_.grid.count();
  if (dials && stage_->CheckConnected().ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("stage ", spec_.stage, " is connected already"));
  }
  RETURN_IF_ERROR(DialDownstream(request, std::move(dialled)));
  for (int carrier = spec_.carrier + 1; carrier < spec_.grid.count(); ++carrier) {
    if (!spec_.grid.AreJoined(carrier, spec_.carrier)) continue;
    RETURN_IF_ERROR(DialPeer(carrier, request.carriers(carrier)));
  }
  return absl::OkStatus();
}

absl::Status StageRun::DialDownstream(const ConnectRequest& request,
                                      std::vector<NeighbourEnd> dialled) {
  if (dialled.empty()) {
    if (request.downstream().empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", spec_.stage, " is the last: downstream ", request.downstream(0), ", want none"));
  }
  const bool dials_last = spec_.first() && spec_.has_tied_link();
  if (dials_last && request.last().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stage 0 is to connect with no last stage, want its address: ", spec_.tied->copy,
        " there is tied to ", spec_.tied->name));
  }
  for (NeighbourEnd& neighbour : dialled) {
    const bool is_tied = neighbour.end.cut == spec_.tied_cut();
    const auto& targets = is_tied ? request.last() : request.downstream();
    const std::vector<int> linked = spec_.LinkedWith(neighbour.stage);
    if (targets.size() != static_cast<int>(linked.size())) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", spec_.stage, " is to connect with ",
                                                     targets.size(), " servers of stage ",
                                                     neighbour.stage, ", want ", linked.size()));
    }
    const auto place = std::find(linked.begin(), linked.end(), neighbour.end.carrier);
    const std::string& target = targets[static_cast<int>(place - linked.begin())];
    absl::StrAppend(&neighbour.end.peer, " (", target, ")");
    RETURN_IF_ERROR(Dial(neighbour.end, target));
  }
  return absl::OkStatus();
}

absl::Status StageRun::CheckSamples(int64_t samples, bool training) const {
  if (generates_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "stage ", spec_.stage, " was configured to generate, and so has read no data"));
  }
  if (samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat("samples: ", samples, ", want at least 1"));
  }
  if (!feed_) return absl::OkStatus();
  const int64_t own = training ? data_->train->size() : data_->test->size();
  if (samples == own) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("stage ", spec_.stage, " reads ", own,
                                                 training ? " training" : " test",
                                                 " samples, the run has ", samples));
}

absl::Status StageRun::CheckRecalibration(const EvaluateRequest& request) const {
  const uint64_t samples = request.recalibration_samples();
  if (samples > 0 && request.compressed()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "recalibration_samples: ", samples, " with compressed, want 0 or an uncompressed one"));
  }
  if (!feed_ || samples <= static_cast<uint64_t>(data_->train->size())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("recalibration_samples: ", samples, ", stage ",
                                                 spec_.stage, " reads ", data_->train->size(),
                                                 " training samples"));
}

absl::Status StageRun::CheckCalibration(const EvaluateRequest& request) const {
  if (!request.compressed()) {
    return absl::InvalidArgumentError("calibrates without compressed, want both");
  }
  const auto samples = static_cast<int64_t>(request.samples());
  const bool fits = feed_ && samples > 0 && samples <= data_->train->size();
  return CheckSamples(fits ? data_->train->size() : samples, /*training=*/true);
}

absl::Status StageRun::Train(const TrainRequest& request, const OnEvent& on_event) {
  if (request.epoch() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("epoch ", request.epoch(), ": want epochs from 1"));
  }
  RETURN_IF_ERROR(CheckSamples(request.samples(), /*training=*/true));
  return OnExecutor([&]() -> absl::Status {
    SteadyTime reported = SteadyTime::Now();
    if (device_trace_) device_trace_->Begin(executor_->last_step() + 1);
    const absl::Status status = executor_->Train(request, [&](const StepReport& step) {
      if (spec_.last()) {
        StageEvent event;
        *event.mutable_step() = step;
        on_event(event);
      }
      // Before the step's own slice, after which the coordinator waits for no other.
      TraceDeviceBehind(step.step(), on_event);
      const bool is_due = SteadyTime::Now() - reported >= kReportEvery;
      // Not after each step, as the work of reporting would show in the steps.
      if (spec_.trace && (is_due || spec_.trace->is_half_full())) ReportTrace(on_event);
      if (!is_due) return;
      reported = SteadyTime::Now();
      StageEvent event;
      // A codec's thread may still have a message of this step, so the report ends with the one
      // before.
      *event.mutable_stage() = ReportOf(*stage_, *executor_, backend_, step.step() - 1);
      on_event(event);
    });
    ReportDeviceTrace(on_event);
    // After an error the steps done before it are reported, too.
    const uint64_t last_step = status.ok() ? kEveryStep : executor_->last_step();
    if (last_step == 0) return status;
    if (spec_.trace) ReportTrace(on_event);
    StageEvent event;
    *event.mutable_stage() = ReportOf(*stage_, *executor_, backend_, last_step);
    on_event(event);
    return status;
  });
}

void StageRun::ReportTrace(const OnEvent& on_event) {
  StageEvent event;
  *event.mutable_trace() = ReportOf(spec_.trace->Take());
  if (event.trace().slices_size() > 0) on_event(event);
}

// A recording begins and ends between two steps, as it takes time that is no step's.
void StageRun::TraceDeviceBehind(uint64_t step, const OnEvent& on_event) {
  if (!device_trace_) return;
  const bool was_recording = device_trace_->is_recording();
  if (!device_trace_->Begin(step + 1)) ReportDeviceTrace(on_event);
  if (device_trace_->is_recording() != was_recording) executor_->StepBeginsNow();
}

void StageRun::ReportDeviceTrace(const OnEvent& on_event) {
  if (!device_trace_) return;
  for (TraceReport& report : device_trace_->End()) {
    StageEvent event;
    *event.mutable_trace() = std::move(report);
    on_event(event);
  }
}

absl::Status StageRun::Evaluate(const EvaluateRequest& request, const OnEvent& on_event) {
  RETURN_IF_ERROR(request.calibrates() ? CheckCalibration(request)
                                       : CheckSamples(request.samples(), /*training=*/false));
  RETURN_IF_ERROR(CheckRecalibration(request));
  return OnExecutor([&]() -> absl::Status {
    const uint64_t bytes_before = stage_->EvaluationWireBytes();
    ASSIGN_OR_RETURN(const EvaluationReport report, executor_->Evaluate(request));
    // Whole batches may have taken more than the microbatches of training.
    if (spec_.memory->is_limited()) TrimDevice()(backend_.device);
    StageEvent event;
    event.set_evaluation_wire_bytes(stage_->EvaluationWireBytes() - bytes_before);
    on_event(event);
    if (!spec_.last()) return absl::OkStatus();
    *event.mutable_evaluation() = report;
    on_event(event);
    return absl::OkStatus();
  });
}

absl::Status StageRun::Gradients(const GradientsRequest& request, const OnEvent& on_event) {
  RETURN_IF_ERROR(CheckSamples(request.samples(), /*training=*/true));
  const auto batches =
      static_cast<uint64_t>(NumBatches(static_cast<int64_t>(request.samples()), spec_.batch_size));
  if (request.epoch() < 1 || request.batch() < 1 || request.batch() > batches) {
    return absl::InvalidArgumentError(absl::StrCat("epoch ", request.epoch(), ", batch ",
                                                   request.batch(),
                                                   ": want epochs from 1, batches 1 to ", batches));
  }
  return OnExecutor([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const StepReport step, executor_->Gradients(request));
    RETURN_IF_ERROR(WriteGradients(stage_->parameters(), kPieceBytes, [&](std::string_view piece) {
      StageEvent event;
      event.mutable_gradients()->set_data(piece.data(), piece.size());
      on_event(event);
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(stage_->ClearGradients());
    StageEvent event;
    if (spec_.last()) {
      *event.mutable_step() = step;
      on_event(event);
    }
    *event.mutable_stage() = ReportOf(*stage_, *executor_, backend_, kEveryStep);
    on_event(event);
    return absl::OkStatus();
  });
}

absl::Status StageRun::ImportParameters(const std::vector<std::string>& kept,
                                        const std::function<bool(std::string_view* piece)>& next) {
  return OnExecutor([&] { return stage_->ImportParameters(kept, next); });
}

absl::Status StageRun::ExportParameters(ExportParametersRequest::Which which,
                                        const std::function<absl::Status(std::string_view)>& sink) {
  return OnExecutor([&]() -> absl::Status {
    std::vector<Parameter> all;
    for (const Parameter* parameter : stage_->parameters()) {
      const bool is_frozen = parameter->spec.role == ParameterSpec::Role::kFrozen;
      const bool is_wanted = which == ExportParametersRequest::ALL ||
                             is_frozen == (which == ExportParametersRequest::FROZEN);
      if (is_wanted) all.push_back(*parameter);
    }
    RETURN_IF_ERROR(stage_->GatherParts(&all));
    std::vector<const Parameter*> pointers;
    for (const Parameter& parameter : all) pointers.push_back(&parameter);
    return WriteParameters(pointers, kPieceBytes, sink);
  });
}

std::optional<StageStanding> StageRun::standing() {
  std::optional<StageStanding> standing;
  (void)OnExecutor([&] {
    standing = executor_->standing();
    return absl::OkStatus();
  });
  return standing;
}

absl::StatusOr<std::vector<StateFile>> StageRun::KeptState(const StageStanding& wanted) {
  {
    absl::MutexLock lock(&snapshot_mutex_);
    held_ = Held();  // nobody reads it any more
  }
  CopiedState what;
  what.shared = true;
  what.outlives = true;
  std::vector<StateFile> files;
  RETURN_IF_ERROR(OnExecutor([&]() -> absl::Status {
    RETURN_IF_ERROR(executor_->Reach(wanted));
    ASSIGN_OR_RETURN(files, CopyState(stage_.get(), what, AvailableMemoryBytes()));
    AllowCopy(files);
    return absl::OkStatus();
  }));
  return files;
}

absl::Status StageRun::TakeKept(const StageStanding& standing, const std::vector<StateFile>& kept) {
  return OnExecutor([&]() -> absl::Status {
    for (const StateFile& file : kept) {
      RETURN_IF_ERROR(RestoreState(stage_.get(), file, standing.step(), AvailableMemoryBytes()));
    }
    executor_->StandAt(standing);
    return absl::OkStatus();
  });
}

void StageRun::AllowCopy(const std::vector<StateFile>& files) {
  uint64_t bytes = 0;
  for (const StateFile& file : files) bytes += FileBytes(file);
  spec_.memory->AllowCopy(bytes);
}

absl::StatusOr<std::vector<StateFile>> StageRun::Copied(const CopiedState& what) {
  RETURN_IF_ERROR(stage_->CheckConnected());
  ASSIGN_OR_RETURN(std::vector<StateFile> files,
                   CopyState(stage_.get(), what, AvailableMemoryBytes()));
  AllowCopy(files);
  // Codes were expanded for the copy; a pool would keep what that took.
  if (spec_.optimizer.moments == MomentFormat::kInt8) TrimDevice()(backend_.device);
  return files;
}

absl::StatusOr<TakeSnapshotResponse> StageRun::TakeSnapshot(const CopiedState& what) {
  {
    absl::MutexLock lock(&snapshot_mutex_);
    snapshot_.clear();  // makes room for the next one
  }
  std::vector<StateFile> files;
  RETURN_IF_ERROR(OnExecutor([&]() -> absl::Status {
    ASSIGN_OR_RETURN(files, Copied(what));
    return absl::OkStatus();
  }));
  TakeSnapshotResponse response;
  for (const StateFile& file : files) {
    *response.add_files()->mutable_part() = file.part;
    response.mutable_files()->rbegin()->set_bytes(FileBytes(file));
  }
  absl::MutexLock lock(&snapshot_mutex_);
  snapshot_ = std::move(files);
  return response;
}

absl::Status StageRun::ReadSnapshot(uint32_t file,
                                    const std::function<absl::Status(std::string_view)>& sink) {
  StateFile taken;
  {
    absl::MutexLock lock(&snapshot_mutex_);
    if (file >= snapshot_.size() || snapshot_[file].empty()) {
      return absl::NotFoundError(absl::StrCat("file ", file, ": the snapshot has ",
                                              snapshot_.size(), ", each is read once"));
    }
    // Taken out under the lock and sent without it, as the client may be slow.
    taken = std::exchange(snapshot_[file], StateFile());
  }
  return WriteFile(taken, kPieceBytes, sink);
}

absl::Status StageRun::HoldState(uint64_t step, int readers) {
  {
    absl::MutexLock lock(&snapshot_mutex_);
    held_ = Held();  // makes room
  }
  CopiedState what;
  what.shared = true;
  auto files = std::make_shared<std::vector<StateFile>>();
  RETURN_IF_ERROR(OnExecutor([&]() -> absl::Status {
    if (executor_->last_step() != step) {
      return absl::FailedPreconditionError(
          absl::StrCat("asked for the state after step ", step, "; stage ", spec_.stage,
                       " here stands after step ", executor_->last_step()));
    }
    ASSIGN_OR_RETURN(*files, Copied(what));
    return absl::OkStatus();
  }));
  absl::MutexLock lock(&snapshot_mutex_);
  held_ = {std::move(files), step, readers};
  return absl::OkStatus();
}

absl::Status StageRun::ReadState(uint64_t step, const OnPiece& on_piece) {
  Held held;
  {
    absl::MutexLock lock(&snapshot_mutex_);
    if (held_.files == nullptr || held_.step != step) {
      return absl::FailedPreconditionError(absl::StrCat(
          "asked for the state after step ", step, "; stage ", spec_.stage, " here holds ",
          held_.files == nullptr ? "none" : absl::StrCat("that after step ", held_.step)));
    }
    held = held_;
  }
  for (const StateFile& file : *held.files) {
    bool is_first = true;
    RETURN_IF_ERROR(WriteFile(file, kStatePieceBytes, [&](std::string_view piece) {
      return on_piece(file.part, std::exchange(is_first, false), piece);
    }));
  }
  absl::MutexLock lock(&snapshot_mutex_);
  if (held_.files == held.files && --held_.readers == 0) held_ = Held();
  return absl::OkStatus();
}

absl::Status StageRun::FetchState(const FetchStateRequest& request) {
  ReadStateRequest read;
  read.set_link_secret(spec_.link_secret);
  read.set_generation(spec_.generation);
  read.set_stage(static_cast<uint32_t>(spec_.stage));
  read.set_step(request.step());
  return ReadPeerState(
      {request.from(), security_, spec_.patience->Deadline(), request.in_background()}, read,
      &transfers_, [&](const StatePart& part, const NextPiece& next) {
        return Restore(part, request.step(), [&](std::string_view* piece) {
          spec_.patience->Advance();
          return next(piece);
        });
      });
}

absl::Status StageRun::Restore(const StatePart& part, uint64_t step,
                               const std::function<bool(std::string_view* piece)>& next,
                               const std::vector<std::string>& kept) {
  return OnExecutor([&]() -> absl::Status {
    RETURN_IF_ERROR(stage_->CheckConnected());
    RETURN_IF_ERROR(RestoreState(stage_.get(), part, step, AvailableMemoryBytes(), next, kept));
    executor_->StartAfter(step);
    return absl::OkStatus();
  });
}

absl::Status StageRun::CheckReadsInitial() const {
  if (!initial_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("stage ", spec_.stage, " reads no model of its own, want init_at: stages"));
}

absl::StatusOr<ListInitialResponse> StageRun::ListInitial() const {
  RETURN_IF_ERROR(CheckReadsInitial());
  return ReadWithin<ListInitialResponse>(kReadingPatience, absl::StrCat("init: ", initial_),
                                         [dir = initial_]() -> absl::StatusOr<ListInitialResponse> {
                                           ASSIGN_OR_RETURN(const InitialFolder folder,
                                                            InitialFolder::Open(dir));
                                           return folder.List();
                                         });
}

absl::StatusOr<ReadInitialResponse> StageRun::ReadInitial(const ReadInitialRequest& request) {
  RETURN_IF_ERROR(CheckReadsInitial());
  ReadInitialResponse response;
  RETURN_IF_ERROR(OnExecutor([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const InitialFolder folder, InitialFolder::Open(initial_));
    return stage_->ReplaceParameters(
        {request.kept().begin(), request.kept().end()}, [&](const LocalStage::Sink& sink) {
          const auto unless_stopped = [&](std::string_view piece) -> absl::Status {
            RETURN_IF_ERROR(executor_->Stopped());
            return sink(piece);
          };
          return folder.Write(request, unless_stopped, &response);
        });
  }));
  return response;
}

absl::Status StageRun::ExportCapture(uint64_t step,
                                     const std::function<absl::Status(std::string_view)>& sink) {
  return OnExecutor([&] { return stage_->TakeCapture(step, kPieceBytes, sink); });
}

absl::StatusOr<GenerateResponse> StageRun::Generate(const GenerateRequest& request) {
  GenerateResponse response;
  RETURN_IF_ERROR(OnExecutor([&]() -> absl::Status {
    ASSIGN_OR_RETURN(response, executor_->Generate(request));
    return absl::OkStatus();
  }));
  return response;
}

absl::Status StageRun::OnExecutor(const std::function<absl::Status()>& task) {
  absl::MutexLock lock(&mutex_);
  // Several calls may wait here. One hands over its task only when the task before has ended and
  // its caller has fetched the result.
  const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return task_ == nullptr && !result_;
  };
  // The task under way has deadlines of its own.
  mutex_.Await(absl::Condition(&free));
  task_ = &task;
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return result_.has_value(); };
  mutex_.Await(absl::Condition(&done));
  const absl::Status result = *std::move(result_);
  result_.reset();
  return result;
}

void StageRun::ExecutorLoop() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || task_ != nullptr;
    };
    mutex_.Await(absl::Condition(&something));
    if (stopping_) {
      (void)backend_.device->Finish();  // another thread frees memory used here
      return;
    }
    const std::function<absl::Status()>& task = *task_;
    mutex_.Unlock();
    absl::Status result = MemoryErrorsAsStatus(task);
    mutex_.Lock();
    task_ = nullptr;
    result_ = std::move(result);
  }
}

StageSnapshot StageRun::Snapshot() const {
  StageSnapshot snapshot = SnapshotOf(*stage_, *executor_, backend_);
  snapshot.run = subject_.run;
  return snapshot;
}

}  // namespace thinwire
