// The gRPC server to which stage servers offer themselves (`thinwire run --listen`).
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/session/joins.h"
#include "coordinator/session/trial.h"
#include "grpcpp/grpcpp.h"
#include "proto/experiment.pb.h"
#include "proto/members.grpc.pb.h"
#include "security/security.h"
#include "transport/listener.h"

namespace thinwire {

// Checks who calls, tries each server at its address, and tells it what became of its offer.
class MembershipService final : public Membership::Service {
 public:
  // `joins` and `experiment` outlive the service. `trust` and `refuse` get the peers of calls that
  // were accepted or not, `say` a line for each server that comes or goes. All run on gRPC's
  // threads.
  using OnPeer = std::function<void(const std::string& peer)>;
  using Say = std::function<void(const std::string& line)>;
  MembershipService(Joins* joins, const Experiment* experiment, Security security, OnPeer trust,
                    OnPeer refuse, Say say);

  grpc::Status Join(grpc::ServerContext* context, const JoinRequest* request,
                    grpc::ServerWriter<JoinEvent>* events) override;

  // Ends the trials that are under way, and lets none begin. Any thread.
  void Stop();

 private:
  absl::Status Try(const JoinRequest& offer);
  absl::StatusOr<TriedServer> Tried(const std::string& address);
  absl::Status Follow(const grpc::ServerContext& context, const std::string& address,
                      grpc::ServerWriter<JoinEvent>* events);

  Joins& joins_;
  const Experiment& experiment_;
  const Security security_;
  const OnPeer trust_, refuse_;
  const Say say_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Trial*> trials_ ABSL_GUARDED_BY(mutex_);
};

// Serves while this object lives.
class MembersServer {
 public:
  // Serves at `listen`, host:port; port 0 lets the system choose. `joins` and what `say` needs
  // outlive the server. Servers must be able to do the work of the resolved `experiment`.
  // Unavailable, with the system's message, if the address cannot be used.
  static absl::StatusOr<std::unique_ptr<MembersServer>> Start(const std::string& listen,
                                                              const Security& security,
                                                              const Experiment& experiment,
                                                              Joins* joins,
                                                              MembershipService::Say say);
  // Tells all servers that the run has ended, and cancels calls that are in flight a second later.
  ~MembersServer();

  // Returns host:port, with the port in use.
  const std::string& address() const { return listener_->address(); }

 private:
  MembersServer(const Experiment& experiment, Joins* joins)
      : experiment_(experiment), joins_(*joins) {}

  const Experiment experiment_;
  Joins& joins_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<MembershipService> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace thinwire
