// The queue as a gRPC service: checks who calls, translates, and passes calls on; and its server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/serve/queue.h"
#include "grpcpp/grpcpp.h"
#include "proto/queue.grpc.pb.h"
#include "security/security.h"

namespace thinwire {

// Limits for the runs that this server accepts.
struct QueueLimits {
  std::vector<std::string> groups;  // groups of stage servers, "HOST:PORT,HOST:PORT"; empty: none
  std::string dir;                  // folder of the results
  uint64_t least_free_bytes = uint64_t{64} << 20;
};

// Returns ResourceExhausted, with both figures, if the disk of the results has less free space than
// the limit. Otherwise one run after the other would fail on a full disk.
absl::Status CheckRoom(const QueueLimits& limits);

// `queue` must outlive the service. A call that waits returns once the queue is closed.
class QueueService final : public Queue::Service {
 public:
  QueueService(RunQueue* queue, QueueLimits limits, Security security)
      : queue_(*queue), limits_(std::move(limits)), security_(std::move(security)) {}

  grpc::Status Submit(grpc::ServerContext* context, const SubmitRequest* request,
                      SubmitResponse* response) override;
  grpc::Status Watch(grpc::ServerContext* context, const WatchRequest* request,
                     grpc::ServerWriter<WatchEvent>* events) override;
  grpc::Status List(grpc::ServerContext* context, const ListRequest* request,
                    ListResponse* response) override;
  grpc::Status Cancel(grpc::ServerContext* context, const CancelRequest* request,
                      CancelResponse* response) override;

 private:
  absl::Status Check(const grpc::ServerContext& context) const;
  absl::Status Take(const SubmitRequest& request, SubmitResponse* response);
  absl::StatusOr<Experiment> Accepted(const SubmitRequest::File& file,
                                      const std::vector<std::string>& overrides) const;
  absl::Status Follow(const grpc::ServerContext& context, const std::string& run,
                      grpc::ServerWriter<WatchEvent>* events);
  absl::Status End(const grpc::ServerContext& context, const std::string& run,
                   QueuedRunStatus* status);

  RunQueue& queue_;
  const QueueLimits limits_;
  const Security security_;
};

// Serves while this object lives. The destructor cancels calls that are still in flight after a
// second.
class QueueServer {
 public:
  // Serves at `listen`, host:port; port 0 lets the system choose. `service` must outlive the
  // server. Unavailable, with the system's message, if the address cannot be used.
  static absl::StatusOr<std::unique_ptr<QueueServer>> Start(const std::string& listen,
                                                            QueueService* service,
                                                            const Security& security);
  ~QueueServer();

  // Returns host:port, with the port in use.
  const std::string& address() const { return address_; }

 private:
  QueueServer() = default;

  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace thinwire
