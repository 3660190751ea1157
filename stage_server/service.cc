#include "stage_server/service.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "config/devices.h"
#include "stage_server/grpc_status.h"
#include "stage_server/provenance.h"

namespace thinwire {
namespace {

constexpr absl::Duration kLeaseCheckEvery = absl::Milliseconds(500);

// Events from the executor's thread to the thread that writes them.
class EventQueue {
 public:
  void Push(const StageEvent& event) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(event);
  }
  void Finish(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    result_ = std::move(status);
  }
  // Events that have come within `wait`, and the result once nothing follows it.
  std::pair<std::vector<StageEvent>, std::optional<absl::Status>> Take(absl::Duration wait) {
    absl::MutexLock lock(&mutex_);
    const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !events_.empty() || result_.has_value();
    };
    mutex_.AwaitWithTimeout(absl::Condition(&something), wait);
    return {std::exchange(events_, {}), result_};
  }

 private:
  absl::Mutex mutex_;
  std::vector<StageEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
};

// Sends a file's pieces one by one.
std::function<absl::Status(std::string_view)> ChunksTo(grpc::ServerWriter<FileChunk>* writer) {
  return [writer](std::string_view bytes) {
    FileChunk chunk;
    chunk.set_data(bytes.data(), bytes.size());
    return writer->Write(chunk) ? absl::OkStatus()
                                : absl::CancelledError("the coordinator ended the call");
  };
}

}  // namespace

StageService::StageService(BackendFactory backend, BoundaryService* boundaries)
    : backend_(std::move(backend)), boundaries_(boundaries), watcher_([this] { WatchLease(); }) {}

StageService::~StageService() {
  Stop();
  watcher_.join();
}

void StageService::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  DropRun(absl::CancelledError("the stage server shuts down"));
}

void StageService::WatchLease() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kLeaseCheckEvery);
      if (stopping_) return;
    }
    if (lease_.TakeExpired(absl::Now())) {
      DropRun(absl::DeadlineExceededError("the coordinator stopped renewing its lease"));
    }
  }
}

// The last user of the run destroys it: this call, or the one that still works for it.
void StageService::DropRun(const absl::Status& reason) {
  std::shared_ptr<StageRun> run;
  {
    absl::MutexLock lock(&mutex_);
    run = std::move(run_);
  }
  if (run) run->Stop(reason);
}

absl::StatusOr<std::shared_ptr<StageRun>> StageService::RunOf(const Lease& lease) const {
  RETURN_IF_ERROR(lease_.Check(lease, absl::Now()));
  absl::MutexLock lock(&mutex_);
  if (run_ == nullptr) return absl::FailedPreconditionError("the stage is not configured");
  return run_;
}

grpc::Status StageService::Acquire(grpc::ServerContext* context, const AcquireRequest* request,
                                   AcquireResponse* response) {
  const absl::Status status =
      lease_.Acquire(request->lease(), absl::StrCat(request->holder(), " at ", context->peer()),
                     absl::Seconds(request->lease_seconds()), absl::Now());
  if (!status.ok()) return ToGrpcStatus(status);
  DropRun(absl::CancelledError("another generation took the server over"));
  *response->mutable_build() = ThisBuild();
  response->set_cores(static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  return grpc::Status::OK;
}

grpc::Status StageService::Renew(grpc::ServerContext*, const RenewRequest* request,
                                 RenewResponse*) {
  return ToGrpcStatus(lease_.Renew(request->lease(), absl::Now()));
}

grpc::Status StageService::Configure(grpc::ServerContext*, const ConfigureRequest* request,
                                     ConfigureResponse* response) {
  const absl::Status held = lease_.Check(request->lease(), absl::Now());
  if (!held.ok()) return ToGrpcStatus(held);
  DropRun(absl::CancelledError("the stage is configured anew"));
  absl::StatusOr<Backend> backend = OpenBackendOf(*request);
  if (!backend.ok()) return ToGrpcStatus(backend.status());
  absl::StatusOr<std::unique_ptr<StageRun>> run =
      StageRun::New(*request, *backend, boundaries_, response);
  if (!run.ok()) return ToGrpcStatus(run.status());
  absl::MutexLock lock(&mutex_);
  if (stopping_) return ToGrpcStatus(absl::CancelledError("the stage server shuts down"));
  run_ = *std::move(run);
  return grpc::Status::OK;
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
    auto [events, finished] = queue.Take(absl::Milliseconds(100));
    bool reachable = !context->IsCancelled();
    for (const StageEvent& event : events) reachable = reachable && writer->Write(event);
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

grpc::Status StageService::ExportParameters(grpc::ServerContext*,
                                            const ExportParametersRequest* request,
                                            grpc::ServerWriter<FileChunk>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return ToGrpcStatus(run.status());
  return ToGrpcStatus((*run)->ExportParameters(ChunksTo(writer)));
}

grpc::Status StageService::ImportParameters(grpc::ServerContext*,
                                            grpc::ServerReader<ImportParametersRequest>* reader,
                                            ImportParametersResponse*) {
  ImportParametersRequest request;
  if (!reader->Read(&request)) {
    return ToGrpcStatus(absl::InvalidArgumentError("no lease and no parameters came"));
  }
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request.lease());
  if (!run.ok()) return ToGrpcStatus(run.status());
  const uint64_t most = (*run)->MaxImportBytes();
  std::string file;
  do {
    file += request.data();
    if (file.size() > most) {
      return ToGrpcStatus(absl::InvalidArgumentError(absl::StrCat(
          "parameters of more than ", most, " bytes, this stage's and a header of 16 MiB")));
    }
  } while (reader->Read(&request));
  return ToGrpcStatus((*run)->ImportParameters(file));
}

grpc::Status StageService::Gradients(grpc::ServerContext* context, const GradientsRequest* request,
                                     grpc::ServerWriter<StageEvent>* writer) {
  return Stream(context, request->lease(), writer,
                [request](StageRun* run, const StageRun::OnEvent& on_event) {
                  return run->Gradients(*request, on_event);
                });
}

grpc::Status StageService::ExportCapture(grpc::ServerContext*, const ExportCaptureRequest* request,
                                         grpc::ServerWriter<FileChunk>* writer) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = RunOf(request->lease());
  if (!run.ok()) return ToGrpcStatus(run.status());
  return ToGrpcStatus((*run)->ExportCapture(request->step(), ChunksTo(writer)));
}

grpc::Status StageService::Release(grpc::ServerContext*, const ReleaseRequest* request,
                                   ReleaseResponse*) {
  const absl::Status status = lease_.Release(request->lease(), absl::Now());
  if (status.ok()) DropRun(absl::CancelledError("the run was released"));
  return ToGrpcStatus(status);
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
