#include "stage_server/service.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/cores.h"
#include "base/resources.h"
#include "base/status.h"
#include "base/steady_clock_id.h"
#include "base/steady_time.h"
#include "config/devices.h"
#include "config/resolve.h"
#include "stage_server/event_queue.h"
#include "stage_server/provenance.h"
#include "stage_server/read_within.h"
#include "transport/status.h"

namespace thinwire {
namespace {

constexpr std::chrono::milliseconds kLeaseCheckEvery{500};
constexpr std::chrono::milliseconds kCancelCheckEvery{100};

// Replaces paths by this machine's and checks the experiment again; both may read files.
absl::StatusOr<Experiment> ResolvedHere(const Experiment& experiment, const AllowedPaths& allowed) {
  return ReadWithin<Experiment>(
      kReadingPatience, DataNames(experiment),
      [here = experiment, allowed]() mutable -> absl::StatusOr<Experiment> {
        RETURN_IF_ERROR(ConfinePaths(allowed, &here));
        RETURN_IF_ERROR(Resolve(&here));
        return here;
      });
}

// Returns the refusal of a lease on a leased server, with the time at which it will be free.
absl::Status UntilFree(const absl::Status& leased, absl::Duration left) {
  if (left == absl::InfiniteDuration()) return leased;
  return absl::UnavailableError(
      absl::StrCat(leased.message(), " until ",
                   absl::FormatTime("%H:%M:%S", absl::Now() + left, absl::UTCTimeZone()), " UTC, ",
                   absl::ToInt64Seconds(absl::Ceil(left, absl::Seconds(1))),
                   " s from now, unless it is renewed"));
}

}  // namespace

StageService::StageService(BackendFactory backend, BoundaryService* boundaries, Journal* journal)
    : backend_(std::move(backend)),
      boundaries_(boundaries),
      journal_(*journal),
      watcher_([this] { WatchLease(); }) {}

StageService::~StageService() {
  Stop();
  watcher_.join();
}

void StageService::set_leases_last() {
  absl::MutexLock lock(&mutex_);
  lease_.set_lasts();
}

void StageService::AskToLeave() {
  absl::MutexLock lock(&mutex_);
  ends_ = true;
}

void StageService::Stop() {
  {
    const std::lock_guard<std::mutex> lock(watcher_mutex_);
    watcher_ends_ = true;
    changed_.notify_all();
  }
  (void)EndRun(
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        stopping_ = true;
        return absl::OkStatus();
      },
      absl::CancelledError("the stage server shuts down"));
}

void StageService::WatchLease() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(watcher_mutex_);
      if (changed_.wait_for(lock, kLeaseCheckEvery, [this] { return watcher_ends_; })) return;
    }
    CancelLateOpenings();
    LogSubject subject;
    const auto take = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const std::optional<Lease> expired = lease_.TakeExpired(SteadyTime::Now());
      if (!expired) return absl::NotFoundError("no lease ran out");
      subject = SubjectOf(*expired);
      return absl::OkStatus();
    };
    const absl::Status ended =
        EndRun(take, absl::DeadlineExceededError("the coordinator stopped renewing its lease"));
    if (ended.ok()) journal_.LeaseExpired(subject);
  }
}

absl::Status StageService::EndRun(const std::function<absl::Status()>& change,
                                  const absl::Status& reason) {
  std::shared_ptr<StageRun> run;  // destroyed after the lock is released
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(change());
  run = std::move(run_);
  if (run == nullptr) return absl::OkStatus();
  run->Stop(reason);
  for (grpc::ServerContext* context : transfers_) context->TryCancel();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<StageRun>> StageService::RunOf(const Lease& lease) const {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(lease_.Check(lease, SteadyTime::Now()));
  if (run_ == nullptr) return absl::FailedPreconditionError("the stage is not configured");
  return run_;
}

LogSubject StageService::SubjectOf(const Lease& lease) const {
  return run_ == nullptr ? LogSubject{lease.run(), {}} : run_->subject();
}

grpc::Status StageService::End(const char* call, const StageRun& run, const absl::Status& status) {
  if (!status.ok()) {
    if (status == run.stopped() || absl::IsCancelled(status)) {
      journal_.Stopped(run.subject(), call, status);
    } else {
      journal_.Failed(run.subject(), call, status);
    }
  }
  return ToGrpcStatus(status);
}

grpc::Status StageService::Refuse(const char* call, const Lease& lease, const absl::Status& error) {
  journal_.Failed({lease.run(), {}}, call, error);
  return ToGrpcStatus(error);
}

bool StageService::WithClient(const StageRun* run, grpc::ServerContext* context,
                              const std::function<bool()>& transfer) {
  {
    absl::MutexLock lock(&mutex_);
    if (run_.get() != run) return false;
    transfers_.insert(context);
  }
  const bool is_done = transfer();
  absl::MutexLock lock(&mutex_);
  transfers_.erase(context);
  return is_done;
}

StageService::Sink StageService::ChunksTo(const StageRun* run, grpc::ServerContext* context,
                                          grpc::ServerWriter<FileChunk>* writer) {
  return [=](std::string_view bytes) {
    FileChunk chunk;
    chunk.set_data(bytes.data(), bytes.size());
    return WithClient(run, context, [&] { return writer->Write(chunk); })
               ? absl::OkStatus()
               : absl::CancelledError("the coordinator ended the call or its run");
  };
}

absl::Status StageService::Lend(const Lease& lease, const std::string& holder, double seconds) {
  if (ends_) return absl::UnavailableError("this server is about to end");
  const SteadyTime now = SteadyTime::Now();
  const absl::Status status = lease_.Acquire(lease, holder, seconds, now);
  return absl::IsUnavailable(status) ? UntilFree(status, lease_.Left(now)) : status;
}

grpc::Status StageService::Acquire(grpc::ServerContext* context, const AcquireRequest* request,
                                   AcquireResponse* response) {
  const std::string holder = absl::StrCat(request->holder(), " at ", context->peer());
  std::string in_force;
  bool is_news = false;
  const absl::Status status = EndRun(
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        in_force = lease_.InForce(SteadyTime::Now());
        const absl::Status leased = Lend(request->lease(), holder, request->lease_seconds());
        // A coordinator that waits for the server asks repeatedly, so the same refusal is logged
        // once.
        const std::string refused = leased.ok() ? "" : absl::StrCat(holder, "; ", in_force);
        is_news = std::exchange(last_refused_, refused) != refused;
        return leased;
      },
      absl::CancelledError("another generation took the server over"));
  if (!status.ok()) {
    if (is_news) journal_.LeaseRefused(*request, holder, in_force, status);
    return ToGrpcStatus(status);
  }
  journal_.LeaseTaken(*request, holder);
  on_holder_(context->peer());
  *response->mutable_build() = ThisBuild();
  response->set_cores(static_cast<uint32_t>(UsableCores()));
  response->set_metrics_address(metrics_address_);
  response->set_memory_bytes(AvailableMemoryBytes());
  return grpc::Status::OK;
}

grpc::Status StageService::Renew(grpc::ServerContext* context, const RenewRequest* request,
                                 RenewResponse* response) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = lease_.Renew(request->lease(), SteadyTime::Now());
    response->set_ends(ends_);
    if (status.ok() && run_ != nullptr) {
      run_->patience().RunAdvanced(request->advances(), SteadyTime::Now());
      response->set_advances(run_->patience().advances());
    }
  }
  if (!status.ok()) return Refuse("Renew", request->lease(), status);
  on_holder_(context->peer());
  response->set_clock(SteadyClockId());
  response->set_steady_nanoseconds(SteadyTime::Now().nanoseconds());
  response->set_unix_nanoseconds(absl::ToUnixNanos(absl::Now()));
  return grpc::Status::OK;
}

grpc::Status StageService::Configure(grpc::ServerContext*, const ConfigureRequest* request,
                                     ConfigureResponse* response) {
  absl::MutexLock one_at_a_time(&build_mutex_);
  const absl::Status status = Build(*request, response);
  if (status.ok()) return grpc::Status::OK;
  journal_.Failed({request->lease().run(), static_cast<int>(request->stage())}, "Configure",
                  status);
  return ToGrpcStatus(status);
}

absl::Status StageService::Build(const ConfigureRequest& request, ConfigureResponse* response) {
  const auto check = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ ? absl::CancelledError("the stage server shuts down")
                     : lease_.Check(request.lease(), SteadyTime::Now());
  };
  RETURN_IF_ERROR(EndRun(check, absl::CancelledError("the stage is configured anew")));
  ConfigureRequest checked = request;
  ASSIGN_OR_RETURN(*checked.mutable_experiment(), ResolvedHere(request.experiment(), allowed_));
  ASSIGN_OR_RETURN(Backend backend, OpenBackendOf(checked));
  const LogSubject subject{request.lease().run(), static_cast<int>(request.stage())};
  backend.on_note = [this, subject](const std::string& note) { journal_.LinkNote(subject, note); };
  ASSIGN_OR_RETURN(const std::shared_ptr<StageRun> run,
                   StageRun::New(checked, backend, boundaries_, response));
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(check());  // another may hold the lease by now
    run_ = run;
  }
  journal_.DeviceTaken(run->subject(), backend.note);
  journal_.Configured(run->subject(), run->spec(), checked, *response);
  return absl::OkStatus();
}

absl::StatusOr<Backend> StageService::OpenBackendOf(const ConfigureRequest& request) const {
  BackendRequest wanted;
  ASSIGN_OR_RETURN(wanted.device,
                   DeviceOf(request.experiment(), static_cast<int>(request.stage())));
  wanted.ops = OpsOptionsFrom(request.experiment());
  wanted.threads = static_cast<int>(request.threads());
  return backend_(wanted);
}

grpc::Status StageService::Connect(grpc::ServerContext*, const ConnectRequest* request,
                                   ConnectResponse*) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("Connect", request->lease(), run.status());
  const absl::Status status = (*run)->Connect(*request);
  if (status.ok()) journal_.Connected((*run)->subject(), request->downstream());
  return End("Connect", **run, status);
}

absl::Status StageService::Stream(
    grpc::ServerContext* context, StageRun* run, grpc::ServerWriter<StageEvent>* writer,
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
    if (!reachable) run->Stop(absl::CancelledError("the coordinator ended the call"));
    result = std::move(finished);
  }
  worker.join();
  return *result;
}

grpc::Status StageService::Train(grpc::ServerContext* context, const TrainRequest* request,
                                 grpc::ServerWriter<StageEvent>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("Train", request->lease(), run.status());
  journal_.EpochBegins((*run)->subject(), *request);
  const SteadyTime start = SteadyTime::Now();
  const absl::Status status =
      Stream(context, run->get(), writer,
             [&](const StageRun::OnEvent& on_event) { return (*run)->Train(*request, on_event); });
  if (status.ok()) journal_.EpochEnds((*run)->subject(), *request, SecondsSince(start));
  return End("Train", **run, status);
}

grpc::Status StageService::EndTraining(grpc::ServerContext*, const EndTrainingRequest* request,
                                       EndTrainingResponse* response) {
  constexpr char kCall[] = "EndTraining";
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse(kCall, request->lease(), run.status());
  if (!request->has_last_step()) {
    response->set_begun_step((*run)->gate().Hold());
    return grpc::Status::OK;
  }
  const bool ends = (*run)->gate().EndAfter(request->last_step());
  return End(kCall, **run,
             ends ? absl::OkStatus()
                  : absl::FailedPreconditionError(absl::StrCat("last_step: ", request->last_step(),
                                                               ", a later one has begun")));
}

grpc::Status StageService::Evaluate(grpc::ServerContext* context, const EvaluateRequest* request,
                                    grpc::ServerWriter<StageEvent>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("Evaluate", request->lease(), run.status());
  const SteadyTime start = SteadyTime::Now();
  std::optional<EvaluationReport> report;
  const absl::Status status =
      Stream(context, run->get(), writer, [&](const StageRun::OnEvent& on_event) {
        return (*run)->Evaluate(*request, [&](const StageEvent& event) {
          if (event.has_evaluation()) report = event.evaluation();
          on_event(event);
        });
      });
  if (status.ok()) {
    journal_.Evaluated((*run)->subject(), *request, report, SecondsSince(start));
  }
  return End("Evaluate", **run, status);
}

grpc::Status StageService::ExportParameters(grpc::ServerContext* context,
                                            const ExportParametersRequest* request,
                                            grpc::ServerWriter<FileChunk>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("ExportParameters", request->lease(), run.status());
  return End("ExportParameters", **run,
             (*run)->ExportParameters(ChunksTo(run->get(), context, writer)));
}

grpc::Status StageService::Gradients(grpc::ServerContext* context, const GradientsRequest* request,
                                     grpc::ServerWriter<StageEvent>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("Gradients", request->lease(), run.status());
  return End("Gradients", **run,
             Stream(context, run->get(), writer, [&](const StageRun::OnEvent& on_event) {
               return (*run)->Gradients(*request, on_event);
             }));
}

grpc::Status StageService::Generate(grpc::ServerContext*, const GenerateRequest* request,
                                    GenerateResponse* response) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("Generate", request->lease(), run.status());
  absl::StatusOr<GenerateResponse> generated = (*run)->Generate(*request);
  if (generated.ok()) *response = *std::move(generated);
  return End("Generate", **run, generated.status());
}

grpc::Status StageService::TakeSnapshot(grpc::ServerContext*, const TakeSnapshotRequest* request,
                                        TakeSnapshotResponse* response) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("TakeSnapshot", request->lease(), run.status());
  absl::StatusOr<TakeSnapshotResponse> taken = (*run)->TakeSnapshot(request->codec_state());
  if (taken.ok()) *response = *std::move(taken);
  return End("TakeSnapshot", **run, taken.status());
}

grpc::Status StageService::ReadSnapshot(grpc::ServerContext* context,
                                        const ReadSnapshotRequest* request,
                                        grpc::ServerWriter<FileChunk>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("ReadSnapshot", request->lease(), run.status());
  return End("ReadSnapshot", **run,
             (*run)->ReadSnapshot(request->file(), ChunksTo(run->get(), context, writer)));
}

grpc::Status StageService::ExportCapture(grpc::ServerContext* context,
                                         const ExportCaptureRequest* request,
                                         grpc::ServerWriter<FileChunk>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return Refuse("ExportCapture", request->lease(), run.status());
  return End("ExportCapture", **run,
             (*run)->ExportCapture(request->step(), ChunksTo(run->get(), context, writer)));
}

grpc::Status StageService::Release(grpc::ServerContext*, const ReleaseRequest* request,
                                   ReleaseResponse*) {
  LogSubject subject;
  const auto release = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    subject = SubjectOf(request->lease());
    return lease_.Release(request->lease(), SteadyTime::Now());
  };
  const absl::Status status = EndRun(release, absl::CancelledError("the run was released"));
  if (!status.ok()) return Refuse("Release", request->lease(), status);
  journal_.LeaseReleased(subject);
  return grpc::Status::OK;
}

bool StageService::IsLeased() const {
  absl::MutexLock lock(&mutex_);
  return lease_.IsHeld(SteadyTime::Now());
}

std::optional<StageSnapshot> StageService::Snapshot() const {
  std::shared_ptr<StageRun> run;
  {
    absl::MutexLock lock(&mutex_);
    run = run_;
  }
  if (run == nullptr) return std::nullopt;
  return run->Snapshot();
}

}  // namespace thinwire
