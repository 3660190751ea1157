#include "stage_server/service.h"

#include <google/protobuf/stubs/common.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/build_info.h"
#include "base/cores.h"
#include "base/resources.h"
#include "base/status.h"
#include "base/steady_clock_id.h"
#include "base/steady_time.h"
#include "config/devices.h"
#include "config/resolve.h"
#include "hwy/highway.h"
#include "hwy/targets.h"
#include "nn/cpu/ops.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "stage_server/read_within.h"

namespace thinwire {
namespace {

// Time between the watcher's looks for a lease that has run out, and a streaming call's for its
// client.
constexpr std::chrono::milliseconds kLeaseCheckEvery{500};
constexpr std::chrono::milliseconds kCancelCheckEvery{100};

// Returns the best SIMD target that this processor has. Highway numbers targets so that the lowest
// bit is the best. x & -x isolates the lowest set bit: -x inverts x and adds one, which carries up
// to that bit and leaves it set.
std::string SimdTarget() {
  const int64_t supported = hwy::SupportedTargets();
  return hwy::TargetName(supported & -supported);
}

// Describes this server's build for the run's record.
BuildInfo ThisBuild() {
  BuildInfo build;
  build.set_commit(BuildCommit());
  build.set_build_id(BuildId());
  build.set_cpu_model(CpuModel());
  build.set_simd_target(SimdTarget());
  build.set_onednn_isa(CpuInstructionSet());
  auto& libraries = *build.mutable_libraries();
  libraries["grpc"] = grpc::Version();
  libraries["protobuf"] = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  const dnnl_version_t* dnnl = dnnl_version();
  libraries["onednn"] = absl::StrCat(dnnl->major, ".", dnnl->minor, ".", dnnl->patch);
  libraries["highway"] = absl::StrCat(HWY_MAJOR, ".", HWY_MINOR, ".", HWY_PATCH);
  return build;
}

// Replaces paths by this machine's and checks the experiment again; both may read files.
absl::StatusOr<Experiment> ResolvedHere(const ConfigureRequest& request,
                                        const AllowedPaths& allowed) {
  return ReadWithin<Experiment>(kReadingPatience, DataNames(request.experiment()),
                                [here = request.experiment(), reads_data = !request.generates(),
                                 allowed]() mutable -> absl::StatusOr<Experiment> {
                                  RETURN_IF_ERROR(ConfinePaths(allowed, reads_data, &here));
                                  RETURN_IF_ERROR(Resolve(&here));
                                  return here;
                                });
}

// Reads or writes with a client that may have gone silent, for a call that is then cancelled.
bool WithClient(StageRun* run, grpc::ServerContext* context,
                const std::function<bool()>& transfer) {
  return run->transfers().Make(transfer, [context] { context->TryCancel(); });
}

// Passes events from the executor's thread to the thread that writes them to the coordinator.
class EventQueue {
 public:
  // Adds an event.
  void Push(const StageEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(event);
    changed_.notify_one();
  }
  // Sets the result of the call, after its last event.
  void Finish(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    result_ = std::move(status);
    changed_.notify_one();
  }
  // Waits up to `wait` and returns the events that have come. Also returns the result if it is set;
  // then no events follow.
  std::pair<std::vector<StageEvent>, std::optional<absl::Status>> Take(
      std::chrono::milliseconds wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, wait, [this] { return !events_.empty() || result_.has_value(); });
    return {std::exchange(events_, {}), result_};
  }

 private:
  std::mutex mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  std::vector<StageEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
};

// Works on a thread of its own, and meanwhile writes the work's events to the client.
absl::Status StreamEvents(StageRun* run, grpc::ServerContext* context,
                          grpc::ServerWriter<StageEvent>* writer,
                          const std::function<absl::Status(const StageRun::OnEvent&)>& work) {
  EventQueue queue;
  std::thread worker(
      [&] { queue.Finish(work([&queue](const StageEvent& event) { queue.Push(event); })); });
  std::optional<absl::Status> result;
  while (!result) {
    auto [events, finished] = queue.Take(kCancelCheckEvery);
    bool reachable = !context->IsCancelled();
    for (const StageEvent& event : events) {
      reachable = reachable && WithClient(run, context, [&] { return writer->Write(event); });
    }
    // Nobody hears of this run any more. Stop closes its links, so that the neighbours end too; the
    // work notices, and its result ends the loop.
    if (!reachable) run->Stop(absl::CancelledError("the coordinator ended the call"));
    result = std::move(finished);
  }
  worker.join();
  return *result;
}

}  // namespace

StageService::StageService(Guard guard, BackendFactory backend, BoundaryService* boundaries,
                           Journal* journal)
    : GuardedService(Stage::service_full_name(), std::move(guard)),
      backend_(std::move(backend)),
      boundaries_(boundaries),
      journal_(*journal),
      meter_(boundaries),
      watcher_([this] { Watch(); }) {
  AddCallsForLeases();
  AddDrain();
  AddCallsForRuns();
  AddCallsForEvents();
  AddCallsForFiles();
  AddCallsForLinks();
}

StageService::~StageService() {
  Stop();
  watcher_.join();
}

void StageService::Stop() {
  {
    const std::lock_guard<std::mutex> lock(watcher_mutex_);
    watcher_ends_ = true;
    changed_.notify_all();
  }
  uploads_.Stop();
  leased_.Stop();
}

void StageService::Watch() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(watcher_mutex_);
      if (changed_.wait_for(lock, kLeaseCheckEvery, [this] { return watcher_ends_; })) return;
    }
    uploads_.CancelLate(SteadyTime::Now());
    const std::optional<LogSubject> expired = leased_.TakeExpired();
    if (!expired) continue;
    journal_.LeaseExpired(*expired);
    if (!is_member_) read_.Forget();
  }
}

absl::Status StageService::Told(const char* call, const LogSubject& subject, absl::Status status) {
  if (!status.ok()) journal_.Failed(subject, call, status);
  return status;
}

absl::Status StageService::ForRun(const char* call, const Lease& lease,
                                  const std::function<absl::Status(StageRun&)>& work) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = leased_.Of(lease);
  if (!run.ok()) return Told(call, {lease.run(), {}}, run.status());
  const LogSubject& subject = (*run)->subject();
  const absl::Status status = work(**run);
  // What follows from the end of the run or of the call is no error of this stage.
  const bool was_stopped = status == (*run)->stopped() || absl::IsCancelled(status);
  if (status.ok() || !was_stopped) return Told(call, subject, status);
  journal_.Stopped(subject, call, status);
  return status;
}

template <typename Request, typename Out>
void StageService::AddCall(const char* name, Call<Request, Out> call) {
  Add<const Request, Out>(name, [=](auto* context, const Request* request, Out* out) {
    return Told(name, {request->lease().run(), {}}, call(context, *request, out));
  });
}

template <typename Request, typename Response>
void StageService::AddWork(const char* name, Work<Request, Response> work) {
  Add<const Request, Response>(name, [=](auto*, const Request* request, Response* response) {
    return ForRun(name, request->lease(),
                  [&](StageRun& run) { return work(run, *request, response); });
  });
}

template <typename Request>
void StageService::AddEvents(const char* name, Work<Request, const Stream> work) {
  using Writer = grpc::ServerWriter<StageEvent>;
  Add<const Request, Writer>(name, [=](auto* context, const Request* request, Writer* writer) {
    return ForRun(name, request->lease(), [&](StageRun& run) {
      const Stream stream = [&](const auto& training) {
        return StreamEvents(&run, context, writer, training);
      };
      return work(run, *request, &stream);
    });
  });
}

template <typename Request>
void StageService::AddDownload(const char* name, Work<Request, const Sink> work) {
  using Writer = grpc::ServerWriter<FileChunk>;
  Add<const Request, Writer>(name, [=](auto* context, const Request* request, Writer* writer) {
    return ForRun(name, request->lease(), [&](StageRun& run) {
      const Sink sink = [&](std::string_view bytes) {
        FileChunk chunk;
        chunk.set_data(bytes.data(), bytes.size());
        return WithClient(&run, context, [&] { return writer->Write(chunk); })
                   ? absl::OkStatus()
                   : absl::CancelledError("the coordinator ended the call or its run");
      };
      return work(run, *request, &sink);
    });
  });
}

template <typename Request, typename Response>
void StageService::AddUpload(const char* name, Work<Request, const Next> work) {
  using Reader = grpc::ServerReader<Request>;
  Add<Reader, Response>(name, [=](auto* context, Reader* reader, auto*) -> absl::Status {
    const auto upload = uploads_.Begin([context] { context->TryCancel(); }, SteadyTime::Now());
    if (!upload.ok()) return Told(name, {}, upload.status());
    Request first;
    if (!reader->Read(&first)) {
      return Told(name, {}, absl::InvalidArgumentError("no lease and no file came"));
    }
    (*upload)->HasOpened();
    return ForRun(name, first.lease(), [&](StageRun& run) {
      Request request;
      bool is_first = true;  // which is there already
      const Next next = [&](std::string_view* piece) {
        if (std::exchange(is_first, false)) {
          *piece = first.data();
          return true;
        }
        if (!WithClient(&run, context, [&] { return reader->Read(&request); })) return false;
        *piece = request.data();
        return true;
      };
      const absl::Status status = work(run, first, &next);
      // The end of a lease cuts the file off.
      const absl::Status lost = leased_.Of(first.lease()).status();
      return lost.ok() ? status : lost;
    });
  });
}

void StageService::AddCallsForLeases() {
  Add<const AcquireRequest, AcquireResponse>(
      "Acquire", [this](auto* context, auto* request, auto* response) {
        const std::string holder = absl::StrCat(request->holder(), " at ", context->peer());
        const LeasedRun::Answer answer = leased_.Acquire(
            request->lease(), holder, request->lease_seconds(), request->keeps_state());
        if (!answer.status.ok()) {
          if (answer.is_news) {
            journal_.LeaseRefused(*request, holder, answer.in_force, answer.status);
          }
          return answer.status;
        }
        journal_.LeaseTaken(*request, holder);
        read_.ForgetOthers(request->lease().run());
        on_holder_(context->peer());
        *response->mutable_build() = ThisBuild();
        response->set_cores(static_cast<uint32_t>(UsableCores()));
        response->set_metrics_address(metrics_address_);
        response->set_memory_bytes(AvailableMemoryBytes());
        const std::shared_ptr<StageRun> past = leased_.past();
        const std::optional<StageStanding> standing = past ? past->standing() : std::nullopt;
        if (standing) *response->mutable_standing() = *standing;
        return absl::OkStatus();
      });
  AddCall<RenewRequest, RenewResponse>(
      "Renew", [this](auto* context, const auto& request, auto* response) -> absl::Status {
        RETURN_IF_ERROR(leased_.Renew(request, response));
        on_holder_(context->peer());
        response->set_clock(SteadyClockId());
        response->set_steady_nanoseconds(SteadyTime::Now().nanoseconds());
        response->set_unix_nanoseconds(absl::ToUnixNanos(absl::Now()));
        return absl::OkStatus();
      });
  AddCall<ReleaseRequest, ReleaseResponse>(
      "Release", [this](auto*, const auto& request, auto*) -> absl::Status {
        ASSIGN_OR_RETURN(const LogSubject subject, leased_.Release(request.lease()));
        journal_.LeaseReleased(subject);
        if (!is_member_) read_.Forget();
        return absl::OkStatus();
      });
}

JoinRequest StageService::Offer() {
  is_member_ = true;
  JoinRequest offer;
  *offer.mutable_build() = ThisBuild();
  offer.set_cores(static_cast<uint32_t>(UsableCores()));
  offer.set_memory_bytes(AvailableMemoryBytes());
  offer.set_run(leased_.holder());
  return offer;
}

void StageService::OfferHasEnded() {
  is_member_ = false;
  if (!IsLeased()) read_.Forget();
}

void StageService::AddDrain() {
  Add<const DrainRequest, DrainResponse>(
      "Drain", [this](auto* context, auto*, auto* response) -> absl::Status {
        if (!on_drain_) {
          return absl::FailedPreconditionError(
              "this server was started by a coordinator, with which it ends");
        }
        response->set_run(leased_.holder());
        journal_.Drained(context->peer(), response->run());
        on_drain_();
        return absl::OkStatus();
      });
}

void StageService::AddCallsForRuns() {
  Add<const ConfigureRequest, ConfigureResponse>(
      "Configure", [this](auto*, auto* request, auto* response) {
        absl::MutexLock one_at_a_time(&build_mutex_);
        return Told("Configure", {request->lease().run(), static_cast<int>(request->stage())},
                    Configure(*request, response));
      });
  AddWork<ConnectRequest, ConnectResponse>(
      "Connect", [this](StageRun& run, const auto& request, auto*) -> absl::Status {
        RETURN_IF_ERROR(run.Connect(request));
        journal_.Connected(run.subject(), absl::StrJoin(request.downstream(), " "));
        return absl::OkStatus();
      });
  AddWork<EndTrainingRequest, EndTrainingResponse>(
      "EndTraining", [](StageRun& run, const auto& request, auto* response) {
        if (!request.has_last_step()) {
          response->set_begun_step(run.gate().Hold());
          return absl::OkStatus();
        }
        return run.gate().EndAfter(request.last_step())
                   ? absl::OkStatus()
                   : absl::FailedPreconditionError(absl::StrCat("last_step: ", request.last_step(),
                                                                ", a later one has begun"));
      });
  AddWork<TakeSnapshotRequest, TakeSnapshotResponse>(
      "TakeSnapshot", [](StageRun& run, const auto& request, auto* response) -> absl::Status {
        const CopiedState copied = {request.codec_state(),
                                    {request.left_out().begin(), request.left_out().end()}};
        ASSIGN_OR_RETURN(*response, run.TakeSnapshot(copied));
        return absl::OkStatus();
      });
  AddWork<HoldStateRequest, HoldStateResponse>(
      "HoldState", [](StageRun& run, const auto& request, auto*) -> absl::Status {
        if (request.readers() < 1) return absl::InvalidArgumentError("readers: 0, want 1 or more");
        return run.HoldState(request.step(), static_cast<int>(request.readers()));
      });
  AddWork<FetchStateRequest, FetchStateResponse>(
      "FetchState", [this](StageRun& run, const auto& request, auto*) -> absl::Status {
        const SteadyTime start = SteadyTime::Now();
        RETURN_IF_ERROR(run.FetchState(request));
        journal_.StateFetched(run.subject(), request.from(), SecondsSince(start));
        return absl::OkStatus();
      });
  AddWork<ListInitialRequest, ListInitialResponse>(
      "ListInitial", [](StageRun& run, const auto&, auto* response) -> absl::Status {
        ASSIGN_OR_RETURN(*response, run.ListInitial());
        return absl::OkStatus();
      });
  AddWork<ReadInitialRequest, ReadInitialResponse>(
      "ReadInitial", [](StageRun& run, const auto& request, auto* response) -> absl::Status {
        ASSIGN_OR_RETURN(*response, run.ReadInitial(request));
        return absl::OkStatus();
      });
  AddWork<GenerateRequest, GenerateResponse>(
      "Generate", [](StageRun& run, const auto& request, auto* response) -> absl::Status {
        ASSIGN_OR_RETURN(*response, run.Generate(request));
        return absl::OkStatus();
      });
}

absl::Status StageService::Configure(const ConfigureRequest& request, ConfigureResponse* response) {
  ASSIGN_OR_RETURN(StageRun::Kept kept, KeptState(request));
  RETURN_IF_ERROR(leased_.Clear(request.lease()));
  ConfigureRequest checked = request;
  ASSIGN_OR_RETURN(*checked.mutable_experiment(), ResolvedHere(request, allowed_));
  ASSIGN_OR_RETURN(Backend backend, OpenBackendOf(checked));
  const LogSubject subject{request.lease().run(), static_cast<int>(request.stage())};
  backend.on_note = [this, subject](const std::string& note) {
    journal_.Note("link", subject, note);
  };
  backend.on_trace_note = [this, subject](const std::string& note) {
    journal_.Note("trace", subject, note);
  };
  backend.swap.on_note = [this, subject](const std::string& note) {
    journal_.Note("swap", subject, note);
  };
  absl::StatusOr<std::shared_ptr<StageRun>> made =
      StageRun::New(checked, backend, kept, &read_, boundaries_, response);
  if (absl::IsResourceExhausted(made.status())) {
    // There may be room for the stage alone, without data that it would read anew.
    kept.reset();
    read_.Forget();
    made = StageRun::New(checked, backend, kept, &read_, boundaries_, response);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<StageRun> run, std::move(made));
  RETURN_IF_ERROR(leased_.Begin(request.lease(), run));
  journal_.DeviceTaken(run->subject(), backend.note);
  journal_.Configured(run->subject(), run->spec(), checked, *response);
  return absl::OkStatus();
}

absl::StatusOr<StageRun::Kept> StageService::KeptState(const ConfigureRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<StageRun> past, leased_.TakePast(request.lease()));
  const bool is_wanted = past != nullptr && request.has_standing() &&
                         static_cast<uint32_t>(past->spec().stage) == request.stage();
  if (!is_wanted) return std::nullopt;
  absl::StatusOr<std::vector<StateFile>> kept = past->KeptState(request.standing());
  if (kept.ok()) return *std::move(kept);
  // It stands elsewhere, or there is no room for a copy: another carrier's state will be fetched.
  journal_.Note("state", past->subject(), std::string(kept.status().message()));
  return std::nullopt;
}

absl::StatusOr<Backend> StageService::OpenBackendOf(const ConfigureRequest& request) const {
  BackendRequest wanted;
  ASSIGN_OR_RETURN(wanted.device,
                   DeviceOf(request.experiment(), static_cast<int>(request.stage())));
  wanted.ops = OpsOptionsFrom(request.experiment());
  wanted.threads = static_cast<int>(request.threads());
  return backend_(wanted);
}

void StageService::AddCallsForEvents() {
  AddEvents<TrainRequest>(
      "Train", [this](StageRun& run, const auto& request, auto* stream) -> absl::Status {
        journal_.EpochBegins(run.subject(), request);
        const SteadyTime start = SteadyTime::Now();
        RETURN_IF_ERROR(
            (*stream)([&](const auto& on_event) { return run.Train(request, on_event); }));
        journal_.EpochEnds(run.subject(), request, SecondsSince(start));
        return absl::OkStatus();
      });
  AddEvents<EvaluateRequest>(
      "Evaluate", [this](StageRun& run, const auto& request, auto* stream) -> absl::Status {
        const SteadyTime start = SteadyTime::Now();
        std::optional<EvaluationReport> report;
        RETURN_IF_ERROR((*stream)([&](const auto& on_event) {
          return run.Evaluate(request, [&](const StageEvent& event) {
            if (event.has_evaluation()) report = event.evaluation();
            on_event(event);
          });
        }));
        journal_.Evaluated(run.subject(), request, report, SecondsSince(start));
        return absl::OkStatus();
      });
  AddEvents<GradientsRequest>("Gradients", [](StageRun& run, const auto& request, auto* stream) {
    return (*stream)([&](const auto& on_event) { return run.Gradients(request, on_event); });
  });
}

void StageService::AddCallsForFiles() {
  AddDownload<ReadSnapshotRequest>("ReadSnapshot",
                                   [](StageRun& run, const auto& request, auto* sink) {
                                     return run.ReadSnapshot(request.file(), *sink);
                                   });
  AddDownload<ExportParametersRequest>("ExportParameters",
                                       [](StageRun& run, const auto& request, auto* sink) {
                                         return run.ExportParameters(request.which(), *sink);
                                       });
  AddDownload<ExportCaptureRequest>("ExportCapture",
                                    [](StageRun& run, const auto& request, auto* sink) {
                                      return run.ExportCapture(request.step(), *sink);
                                    });
  AddUpload<ImportParametersRequest, ImportParametersResponse>(
      "ImportParameters", [](StageRun& run, const auto& first, auto* next) {
        return run.ImportParameters({first.kept().begin(), first.kept().end()}, *next);
      });
  AddUpload<RestoreRequest, RestoreResponse>(
      "Restore", [](StageRun& run, const auto& first, auto* next) {
        return run.Restore(first.part(), first.step(), *next,
                           {first.kept().begin(), first.kept().end()});
      });
}

LinkMeter::Stopped StageService::StopsMeasurement(const Lease& lease,
                                                  const grpc::ServerContext* context) const {
  return [this, &lease, context]() -> absl::Status {
    RETURN_IF_ERROR(leased_.CheckMeasures(lease));
    return context->IsCancelled() ? absl::CancelledError("the measurement was ended")
                                  : absl::OkStatus();
  };
}

void StageService::AddCallsForLinks() {
  AddCall<AnswerLinkRequest, grpc::ServerWriter<AnswerLinkResponse>>(
      "AnswerLink", [this](auto* context, const auto& request, auto* writer) {
        return meter_.Answer(
            request, [&] { return writer->Write({}); }, StopsMeasurement(request.lease(), context));
      });
  AddCall<MeasureLinkRequest, MeasureLinkResponse>(
      "MeasureLink", [this](auto* context, const auto& request, auto* response) {
        return meter_.Measure(request, StopsMeasurement(request.lease(), context), response);
      });
}

std::optional<StageSnapshot> StageService::Snapshot() const {
  const std::shared_ptr<StageRun> run = leased_.run();
  if (run == nullptr) return std::nullopt;
  return run->Snapshot();
}

}  // namespace thinwire
