// The control service of a stage server. It turns calls into calls of one StageRun, and errors into
// gRPC statuses. Leases decide who may call.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/stage.grpc.pb.h"
#include "stage_server/allowed_paths.h"
#include "stage_server/guarded_service.h"
#include "stage_server/journal.h"
#include "stage_server/leased_run.h"
#include "stage_server/link_meter.h"
#include "stage_server/open_backend.h"
#include "stage_server/run.h"
#include "stage_server/uploads.h"
#include "transport/boundary_service.h"

namespace thinwire {

class StageService final : public GuardedService {
 public:
  // Opens the backend of a run; called once for each.
  using BackendFactory = std::function<absl::StatusOr<Backend>(const BackendRequest&)>;

  // `guard` is asked who may call. `boundaries` and `journal` outlive the service.
  StageService(Guard guard, BackendFactory backend, BoundaryService* boundaries, Journal* journal);
  ~StageService() override;

  // Leases last until they are released (LeaseHolder::set_lasts); before the first call.
  void set_leases_last() { leased_.set_lasts(); }
  // What Acquire answers; before the first call.
  void set_metrics_address(const std::string& address) { metrics_address_ = address; }

  // Sets which paths of a coordinator are followed. Called before the first call.
  void set_allowed_paths(const AllowedPaths& allowed) { allowed_ = allowed; }

  // How long the first message of a call that sends a file may take; before the first call.
  void set_opening_patience(absl::Duration patience) { uploads_.set_patience(patience); }

  // Sets a function that is called with the peer of each call that took or renewed the lease, as
  // ServerContext::peer() names it. It runs on gRPC's threads. Called before the first call.
  void set_on_holder(std::function<void(const std::string& peer)> on_holder) {
    on_holder_ = std::move(on_holder);
  }

  // Returns the state for /metrics; nothing while no run is configured. Any thread.
  std::optional<StageSnapshot> Snapshot() const;
  bool IsLeased() const { return leased_.IsLeased(); }

  // From now on nobody gets a lease, and who holds one is told to leave. Any thread.
  void AskToLeave() { leased_.AskToLeave(); }

  // Ends whatever runs; for the server's shutdown.
  void Stop();

 private:
  // The calls of service Stage.
  absl::Status Acquire(grpc::ServerContext* context, const AcquireRequest* request,
                       AcquireResponse* response);
  absl::Status Renew(grpc::ServerContext* context, const RenewRequest* request,
                     RenewResponse* response);
  absl::Status Configure(grpc::ServerContext* context, const ConfigureRequest* request,
                         ConfigureResponse* response);
  absl::Status Connect(grpc::ServerContext* context, const ConnectRequest* request,
                       ConnectResponse* response);
  absl::Status Train(grpc::ServerContext* context, const TrainRequest* request,
                     grpc::ServerWriter<StageEvent>* writer);
  absl::Status EndTraining(grpc::ServerContext* context, const EndTrainingRequest* request,
                           EndTrainingResponse* response);
  absl::Status TakeSnapshot(grpc::ServerContext* context, const TakeSnapshotRequest* request,
                            TakeSnapshotResponse* response);
  absl::Status ReadSnapshot(grpc::ServerContext* context, const ReadSnapshotRequest* request,
                            grpc::ServerWriter<FileChunk>* writer);
  absl::Status Restore(grpc::ServerContext* context, grpc::ServerReader<RestoreRequest>* reader,
                       RestoreResponse* response);
  absl::Status Evaluate(grpc::ServerContext* context, const EvaluateRequest* request,
                        grpc::ServerWriter<StageEvent>* writer);
  absl::Status ExportParameters(grpc::ServerContext* context,
                                const ExportParametersRequest* request,
                                grpc::ServerWriter<FileChunk>* writer);
  absl::Status ImportParameters(grpc::ServerContext* context,
                                grpc::ServerReader<ImportParametersRequest>* reader,
                                ImportParametersResponse* response);
  absl::Status Gradients(grpc::ServerContext* context, const GradientsRequest* request,
                         grpc::ServerWriter<StageEvent>* writer);
  absl::Status Generate(grpc::ServerContext* context, const GenerateRequest* request,
                        GenerateResponse* response);
  absl::Status ExportCapture(grpc::ServerContext* context, const ExportCaptureRequest* request,
                             grpc::ServerWriter<FileChunk>* writer);
  absl::Status AnswerLink(grpc::ServerContext* context, const AnswerLinkRequest* request,
                          grpc::ServerWriter<AnswerLinkResponse>* writer);
  absl::Status MeasureLink(grpc::ServerContext* context, const MeasureLinkRequest* request,
                           MeasureLinkResponse* response);
  absl::Status Release(grpc::ServerContext* context, const ReleaseRequest* request,
                       ReleaseResponse* response);

  absl::Status Build(const ConfigureRequest& request, ConfigureResponse* response);
  absl::StatusOr<Backend> OpenBackendOf(const ConfigureRequest& request) const;
  // Does the work of the call named `call` for the lease's run, if it has one. What does not go
  // well is told to the journal.
  absl::Status ForRun(const char* call, const Lease& lease,
                      const std::function<absl::Status(StageRun&)>& work);
  absl::Status Refuse(const char* call, const Lease& lease, const absl::Status& error);
  // Returns what ends a measurement: the end of the lease or of the call, and a run.
  LinkMeter::Stopped StopsMeasurement(const Lease& lease, const grpc::ServerContext* context) const;
  absl::Status Stream(grpc::ServerContext* context, StageRun* run,
                      grpc::ServerWriter<StageEvent>* writer,
                      const std::function<absl::Status(const StageRun::OnEvent&)>& work);
  // Hands a file that the client sends to `take`, piece by piece.
  using Next = std::function<bool(std::string_view* piece)>;
  template <typename Request>
  using Take = std::function<absl::Status(StageRun&, const Request& first, const Next&)>;
  template <typename Request>
  absl::Status Upload(const char* call, grpc::ServerContext* context,
                      grpc::ServerReader<Request>* reader, const Take<Request>& take);
  // Ends the run of a lease that runs out, and calls that do not begin.
  void Watch();

  const BackendFactory backend_;
  BoundaryService* const boundaries_;
  Journal& journal_;
  std::string metrics_address_;
  AllowedPaths allowed_;
  std::function<void(const std::string& peer)> on_holder_ = [](const std::string&) {};
  absl::Mutex build_mutex_;  // held by the one Configure that builds
  LeasedRun leased_;
  Uploads uploads_;
  const LinkMeter meter_;

  std::mutex watcher_mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  bool watcher_ends_ ABSL_GUARDED_BY(watcher_mutex_) = false;
  std::thread watcher_;
};

}  // namespace thinwire
