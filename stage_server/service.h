// The control service of a stage server. It turns calls into calls of one StageRun, and errors into
// gRPC statuses. Leases decide who may call.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/stage.grpc.pb.h"
#include "stage_server/allowed_paths.h"
#include "stage_server/journal.h"
#include "stage_server/lease.h"
#include "stage_server/open_backend.h"
#include "stage_server/run.h"
#include "transport/boundary_service.h"

namespace thinwire {

class StageService final : public Stage::Service {
 public:
  // Opens the backend of a run; called once for each.
  using BackendFactory = std::function<absl::StatusOr<Backend>(const BackendRequest&)>;

  // Makes a service; `boundaries` and `journal` outlive it.
  StageService(BackendFactory backend, BoundaryService* boundaries, Journal* journal);
  ~StageService() override;

  grpc::Status Acquire(grpc::ServerContext* context, const AcquireRequest* request,
                       AcquireResponse* response) override;
  grpc::Status Renew(grpc::ServerContext* context, const RenewRequest* request,
                     RenewResponse* response) override;
  grpc::Status Configure(grpc::ServerContext* context, const ConfigureRequest* request,
                         ConfigureResponse* response) override;
  grpc::Status Connect(grpc::ServerContext* context, const ConnectRequest* request,
                       ConnectResponse* response) override;
  grpc::Status Train(grpc::ServerContext* context, const TrainRequest* request,
                     grpc::ServerWriter<StageEvent>* writer) override;
  grpc::Status EndTraining(grpc::ServerContext* context, const EndTrainingRequest* request,
                           EndTrainingResponse* response) override;
  grpc::Status TakeSnapshot(grpc::ServerContext* context, const TakeSnapshotRequest* request,
                            TakeSnapshotResponse* response) override;
  grpc::Status ReadSnapshot(grpc::ServerContext* context, const ReadSnapshotRequest* request,
                            grpc::ServerWriter<FileChunk>* writer) override;
  grpc::Status Restore(grpc::ServerContext* context, grpc::ServerReader<RestoreRequest>* reader,
                       RestoreResponse* response) override;
  grpc::Status Evaluate(grpc::ServerContext* context, const EvaluateRequest* request,
                        grpc::ServerWriter<StageEvent>* writer) override;
  grpc::Status ExportParameters(grpc::ServerContext* context,
                                const ExportParametersRequest* request,
                                grpc::ServerWriter<FileChunk>* writer) override;
  grpc::Status ImportParameters(grpc::ServerContext* context,
                                grpc::ServerReader<ImportParametersRequest>* reader,
                                ImportParametersResponse* response) override;
  grpc::Status Gradients(grpc::ServerContext* context, const GradientsRequest* request,
                         grpc::ServerWriter<StageEvent>* writer) override;
  grpc::Status Generate(grpc::ServerContext* context, const GenerateRequest* request,
                        GenerateResponse* response) override;
  grpc::Status ExportCapture(grpc::ServerContext* context, const ExportCaptureRequest* request,
                             grpc::ServerWriter<FileChunk>* writer) override;
  grpc::Status AnswerLink(grpc::ServerContext* context, const AnswerLinkRequest* request,
                          grpc::ServerWriter<AnswerLinkResponse>* writer) override;
  grpc::Status MeasureLink(grpc::ServerContext* context, const MeasureLinkRequest* request,
                           MeasureLinkResponse* response) override;
  grpc::Status Release(grpc::ServerContext* context, const ReleaseRequest* request,
                       ReleaseResponse* response) override;

  // Makes leases last until they are released (LeaseHolder::set_lasts). Called before the first
  // call.
  void set_leases_last();
  // Sets the address of /metrics that Acquire answers. Called before the first call.
  void set_metrics_address(const std::string& address) { metrics_address_ = address; }

  // Sets which paths of a coordinator are followed. Called before the first call.
  void set_allowed_paths(const AllowedPaths& allowed) { allowed_ = allowed; }

  // Sets how long the first message of a call that sends a file may take. Called before the first
  // call.
  void set_opening_patience(absl::Duration patience) { opening_patience_ = patience; }

  // Sets a function that is called with the peer of each call that took or renewed the lease, as
  // ServerContext::peer() names it. It runs on gRPC's threads. Called before the first call.
  void set_on_holder(std::function<void(const std::string& peer)> on_holder) {
    on_holder_ = std::move(on_holder);
  }

  // Returns the state for /metrics; nothing while no run is configured. Any thread.
  std::optional<StageSnapshot> Snapshot() const;
  bool IsLeased() const;

  // Grants no lease from now on, and tells the holder of one to leave. Any thread.
  void AskToLeave();

  // Ends whatever runs; for the server's shutdown.
  void Stop();

 private:
  using Sink = std::function<absl::Status(std::string_view)>;

  // Makes a change of the lease. If `change` succeeds, ends the run that held the server with
  // `reason`; otherwise returns its error.
  absl::Status EndRun(const std::function<absl::Status()>& change, const absl::Status& reason);
  // Grants the lease, or returns an error that says until when the server is leased.
  absl::Status Lend(const Lease& lease, const std::string& holder, double seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Build(const ConfigureRequest& request, ConfigureResponse* response);
  absl::StatusOr<Backend> OpenBackendOf(const ConfigureRequest& request) const;
  absl::StatusOr<std::shared_ptr<StageRun>> RunOf(const Lease& lease) const;
  // Returns OK if the lease is in force, no stage is configured and the call is not cancelled.
  absl::Status MayMeasure(const Lease& lease, const grpc::ServerContext& context) const;
  LogSubject SubjectOf(const Lease& lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the status of the call named `call`, and records it in the journal unless it is OK.
  grpc::Status End(const char* call, const StageRun& run, const absl::Status& status);
  grpc::Status Refuse(const char* call, const Lease& lease, const absl::Status& error);
  absl::Status Stream(grpc::ServerContext* context, StageRun* run,
                      grpc::ServerWriter<StageEvent>* writer,
                      const std::function<absl::Status(const StageRun::OnEvent&)>& work);
  // Runs `transfer`, a read or write for `run` that waits for a client who may be silent, and
  // returns its result. The end of the run cancels the call and so ends the wait. Returns false if
  // the run has ended already.
  bool WithClient(const StageRun* run, grpc::ServerContext* context,
                  const std::function<bool()>& transfer);
  // Returns a sink that sends a file piece by piece.
  Sink ChunksTo(const StageRun* run, grpc::ServerContext* context,
                grpc::ServerWriter<FileChunk>* writer);
  void WatchLease();
  // Calls `take` with a source of the pieces of a file that the client sends.
  using Next = std::function<bool(std::string_view* piece)>;
  template <typename Request>
  using Take = std::function<absl::Status(StageRun&, const Request& first, const Next&)>;
  template <typename Request>
  grpc::Status Upload(const char* call, grpc::ServerContext* context,
                      grpc::ServerReader<Request>* reader, const Take<Request>& take);
  // Returns whether an upload may begin. Its first message must then come soon, after which
  // EndOpening is called.
  bool BeginUpload(grpc::ServerContext* context);
  void EndOpening(grpc::ServerContext* context);
  void EndUpload(grpc::ServerContext* context);
  void CancelLateOpenings();

  const BackendFactory backend_;
  BoundaryService* const boundaries_;
  Journal& journal_;
  std::string metrics_address_;
  AllowedPaths allowed_;
  absl::Duration opening_patience_;
  absl::Mutex build_mutex_;  // held by the Configure that builds; taken before mutex_

  mutable absl::Mutex mutex_;
  LeaseHolder lease_ ABSL_GUARDED_BY(mutex_);
  // Last refused holder and whose lease refused it.
  std::string last_refused_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const std::string& peer)> on_holder_ = [](const std::string&) {};
  // The run of the lease in force; both end together. The last call that works for the run destroys
  // it.
  std::shared_ptr<StageRun> run_ ABSL_GUARDED_BY(mutex_);
  std::set<grpc::ServerContext*> transfers_ ABSL_GUARDED_BY(mutex_);  // see WithClient
  int uploads_ ABSL_GUARDED_BY(mutex_) = 0;                           // number under way
  // Uploads whose first message, which has the lease, has not come, and its deadline.
  std::map<grpc::ServerContext*, SteadyTime> openings_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;  // set by AskToLeave
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::mutex watcher_mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  bool watcher_ends_ ABSL_GUARDED_BY(watcher_mutex_) = false;
  std::thread watcher_;
};

}  // namespace thinwire
