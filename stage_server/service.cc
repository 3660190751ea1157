#include "stage_server/service.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "config/devices.h"
#include "config/resolve.h"
#include "stage_server/event_queue.h"
#include "stage_server/grpc/status.h"
#include "stage_server/provenance.h"

namespace thinwire {
namespace {

constexpr std::chrono::milliseconds kLeaseCheckEvery{500};
constexpr std::chrono::milliseconds kCancelCheckEvery{100};

}  // namespace

StageService::StageService(BackendFactory backend, BoundaryService* boundaries)
    : backend_(std::move(backend)), boundaries_(boundaries), watcher_([this] { WatchLease(); }) {}

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
    (void)EndRun(
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return lease_.TakeExpired(SteadyTime::Now()) ? absl::OkStatus()
                                                       : absl::NotFoundError("no lease ran out");
        },
        absl::DeadlineExceededError("the coordinator stopped renewing its lease"));
  }
}

absl::Status StageService::EndRun(const std::function<absl::Status()>& change,
                                  const absl::Status& reason) {
  std::shared_ptr<StageRun> run;  // goes without the lock
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

grpc::Status StageService::Acquire(grpc::ServerContext* context, const AcquireRequest* request,
                                   AcquireResponse* response) {
  const std::string holder = absl::StrCat(request->holder(), " at ", context->peer());
  const absl::Status status = EndRun(
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return lease_.Acquire(request->lease(), holder, request->lease_seconds(),
                              SteadyTime::Now());
      },
      absl::CancelledError("another generation took the server over"));
  if (!status.ok()) return ToGrpcStatus(status);
  *response->mutable_build() = ThisBuild();
  response->set_cores(static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  return grpc::Status::OK;
}

grpc::Status StageService::Renew(grpc::ServerContext*, const RenewRequest* request,
                                 RenewResponse*) {
  absl::MutexLock lock(&mutex_);
  return ToGrpcStatus(lease_.Renew(request->lease(), SteadyTime::Now()));
}

grpc::Status StageService::Configure(grpc::ServerContext*, const ConfigureRequest* request,
                                     ConfigureResponse* response) {
  absl::MutexLock one_at_a_time(&build_mutex_);
  return ToGrpcStatus(Build(*request, response));
}

absl::Status StageService::Build(const ConfigureRequest& request, ConfigureResponse* response) {
  const auto check = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ ? absl::CancelledError("the stage server shuts down")
                     : lease_.Check(request.lease(), SteadyTime::Now());
  };
  RETURN_IF_ERROR(EndRun(check, absl::CancelledError("the stage is configured anew")));
  ConfigureRequest checked = request;
  RETURN_IF_ERROR(Resolve(checked.mutable_experiment()));
  ASSIGN_OR_RETURN(const Backend backend, OpenBackendOf(checked));
  ASSIGN_OR_RETURN(std::unique_ptr<StageRun> run,
                   StageRun::New(checked, backend, boundaries_, response));
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(check());  // it may be another's by now
  run_ = std::move(run);
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
  if (!run.ok()) return ToGrpcStatus(run.status());
  return ToGrpcStatus((*run)->Connect(request->downstream()));
}

grpc::Status StageService::Stream(
    grpc::ServerContext* context, const Lease& lease, grpc::ServerWriter<StageEvent>* writer,
    const std::function<absl::Status(StageRun*, const StageRun::OnEvent&)>& work) {
  absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(lease);
  if (!run.ok()) return ToGrpcStatus(run.status());
  EventQueue queue;
  std::thread worker([&] {
    queue.Finish(work(run->get(), [&queue](const StageEvent& event) { queue.Push(event); }));
  });
  std::optional<absl::Status> result;
  while (!result) {
    auto [events, finished] = queue.Take(kCancelCheckEvery);
    bool reachable = !context->IsCancelled();
    for (const StageEvent& event : events) {
      reachable =
          reachable && WithClient(run->get(), context, [&] { return writer->Write(event); });
    }
    if (!reachable) (*run)->Stop(absl::CancelledError("the coordinator ended the call"));
    result = std::move(finished);
  }
  worker.join();
  return ToGrpcStatus(*result);
}

grpc::Status StageService::Train(grpc::ServerContext* context, const TrainRequest* request,
                                 grpc::ServerWriter<StageEvent>* writer) {
  return Stream(context, request->lease(), writer,
                [request](StageRun* run, const StageRun::OnEvent& on_event) {
                  return run->Train(request->epoch(), request->samples(), on_event);
                });
}

grpc::Status StageService::Evaluate(grpc::ServerContext* context, const EvaluateRequest* request,
                                    grpc::ServerWriter<StageEvent>* writer) {
  return Stream(context, request->lease(), writer,
                [request](StageRun* run, const StageRun::OnEvent& on_event) {
                  return run->Evaluate(*request, on_event);
                });
}

grpc::Status StageService::ExportParameters(grpc::ServerContext* context,
                                            const ExportParametersRequest* request,
                                            grpc::ServerWriter<FileChunk>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return ToGrpcStatus(run.status());
  return ToGrpcStatus((*run)->ExportParameters(ChunksTo(run->get(), context, writer)));
}

grpc::Status StageService::ImportParameters(grpc::ServerContext* context,
                                            grpc::ServerReader<ImportParametersRequest>* reader,
                                            ImportParametersResponse*) {
  ImportParametersRequest request;
  if (!reader->Read(&request)) {
    return ToGrpcStatus(absl::InvalidArgumentError("no lease and no parameters came"));
  }
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request.lease());
  if (!run.ok()) return ToGrpcStatus(run.status());
  const Lease lease = request.lease();
  const uint64_t most = (*run)->MaxImportBytes();
  std::string file;
  do {
    file += request.data();
    if (file.size() > most) {
      return ToGrpcStatus(absl::InvalidArgumentError(absl::StrCat(
          "parameters of more than ", most, " bytes, this stage's and a header of 16 MiB")));
    }
  } while (WithClient(run->get(), context, [&] { return reader->Read(&request); }));
  // Or the file was cut off.
  if (const absl::Status status = RunOf(lease).status(); !status.ok()) {
    return ToGrpcStatus(status);
  }
  return ToGrpcStatus((*run)->ImportParameters(file));
}

grpc::Status StageService::Gradients(grpc::ServerContext* context, const GradientsRequest* request,
                                     grpc::ServerWriter<StageEvent>* writer) {
  return Stream(context, request->lease(), writer,
                [request](StageRun* run, const StageRun::OnEvent& on_event) {
                  return run->Gradients(*request, on_event);
                });
}

grpc::Status StageService::ExportCapture(grpc::ServerContext* context,
                                         const ExportCaptureRequest* request,
                                         grpc::ServerWriter<FileChunk>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return ToGrpcStatus(run.status());
  return ToGrpcStatus(
      (*run)->ExportCapture(request->step(), ChunksTo(run->get(), context, writer)));
}

grpc::Status StageService::Release(grpc::ServerContext*, const ReleaseRequest* request,
                                   ReleaseResponse*) {
  const auto release = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return lease_.Release(request->lease(), SteadyTime::Now());
  };
  return ToGrpcStatus(EndRun(release, absl::CancelledError("the run was released")));
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
