// The control service of a stage server. It turns calls into calls of one StageRun, and errors into
// gRPC statuses. Leases decide who may call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/members.pb.h"
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
  // Sets the address that Acquire answers with; called before the first call.
  void set_metrics_address(const std::string& address) { metrics_address_ = address; }

  // Sets which paths of a coordinator are followed. Called before the first call.
  void set_allowed_paths(const AllowedPaths& allowed) { allowed_ = allowed; }

  // Sets the longest time that the first message of a call that sends a file may take; called
  // before the first call.
  void set_opening_patience(absl::Duration patience) { uploads_.set_patience(patience); }

  // Sets a function that is called with the peer of each call that took or renewed the lease, as
  // ServerContext::peer() names it. It runs on gRPC's threads. Called before the first call.
  void set_on_holder(std::function<void(const std::string& peer)> on_holder) {
    on_holder_ = std::move(on_holder);
  }

  // Sets a function that makes the server end as SIGTERM does, for Drain. Unless it is set, Drain
  // is refused. Called before the first call.
  void set_on_drain(std::function<void()> on_drain) { on_drain_ = std::move(on_drain); }

  // Returns the state for /metrics; nothing while no run is configured. Any thread.
  std::optional<StageSnapshot> Snapshot() const;
  bool IsLeased() const { return leased_.IsLeased(); }
  // Returns the run that is configured; null: none. Any thread.
  std::shared_ptr<StageRun> run() const { return leased_.run(); }
  // Returns what a run that the server is to join has to know of it, but for its address. From then
  // on the run's data stay here between its leases, until the offer has ended. Any thread.
  JoinRequest Offer();
  void OfferHasEnded();

  // From now on nobody gets a lease, and who holds one is told to leave. Any thread.
  void AskToLeave() { leased_.AskToLeave(); }

  // Ends whatever runs; for the server's shutdown.
  void Stop();

 private:
  // Add the calls of service Stage.
  void AddCallsForLeases();
  void AddDrain();
  void AddCallsForRuns();
  void AddCallsForEvents();
  void AddCallsForFiles();
  void AddCallsForLinks();

  // Adds a call that may come without a run. Here and below the journal is told of errors.
  template <typename Request, typename Out>
  using Call = std::function<absl::Status(grpc::ServerContext*, const Request&, Out*)>;
  template <typename Request, typename Out>
  void AddCall(const char* name, Call<Request, Out> call);
  // Add a call that does `work` for the run of its lease.
  template <typename Request, typename Response>
  using Work = std::function<absl::Status(StageRun&, const Request&, Response*)>;
  template <typename Request, typename Response>
  void AddWork(const char* name, Work<Request, Response> work);
  // Runs its argument on a thread of its own, and sends the client the events of that.
  using Stream =
      std::function<absl::Status(const std::function<absl::Status(const StageRun::OnEvent&)>&)>;
  template <typename Request>
  void AddEvents(const char* name, Work<Request, const Stream> work);
  // Sends the client the next piece of a file.
  using Sink = std::function<absl::Status(std::string_view)>;
  template <typename Request>
  void AddDownload(const char* name, Work<Request, const Sink> work);
  // Returns the next piece of a file that the client sends; false after the last. The request is
  // the first message, which has the first piece.
  using Next = std::function<bool(std::string_view* piece)>;
  template <typename Request, typename Response>
  void AddUpload(const char* name, Work<Request, const Next> work);

  absl::Status Configure(const ConfigureRequest& request, ConfigureResponse* response);
  // Returns what was kept of the generation before, as the request wants it, if it was.
  absl::StatusOr<StageRun::Kept> KeptState(const ConfigureRequest& request);
  absl::StatusOr<Backend> OpenBackendOf(const ConfigureRequest& request) const;
  absl::Status ForRun(const char* call, const Lease& lease,
                      const std::function<absl::Status(StageRun&)>& work);
  // Returns `status`, of which the journal is told if it is an error.
  absl::Status Told(const char* call, const LogSubject& subject, absl::Status status);
  // Returns what ends a measurement: the end of the lease or of the call, and a run.
  LinkMeter::Stopped StopsMeasurement(const Lease& lease, const grpc::ServerContext* context) const;
  // Ends the run of a lease that runs out, and calls that do not begin.
  void Watch();

  const BackendFactory backend_;
  BoundaryService* const boundaries_;
  Journal& journal_;
  std::string metrics_address_;
  AllowedPaths allowed_;
  std::function<void(const std::string& peer)> on_holder_ = [](const std::string&) {};
  std::function<void()> on_drain_;
  absl::Mutex build_mutex_;  // held by the one Configure that builds
  RunData read_;
  std::atomic<bool> is_member_{false};  // of a run that it has offered itself to
  LeasedRun leased_;
  Uploads uploads_;
  const LinkMeter meter_;

  std::mutex watcher_mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  bool watcher_ends_ ABSL_GUARDED_BY(watcher_mutex_) = false;
  std::thread watcher_;
};

}  // namespace thinwire
