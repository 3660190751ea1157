// The queue as the network sees it: lets coordinators in, translates, and hands on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/serve/queue.h"
#include "grpcpp/grpcpp.h"
#include "proto/queue.grpc.pb.h"
#include "security/security.h"

namespace thinwire {

// What a run that this server is to make must fit.
struct QueueLimits {
  std::vector<std::string> groups;  // of stage servers, "HOST:PORT,HOST:PORT"; empty: none
  std::string dir;                  // of the results
  uint64_t least_free_bytes = uint64_t{64} << 20;
};

// ResourceExhausted, with both figures, where the disk of the results has less room than that. Runs
// fail on a full disk, and must not do so one after the other.
absl::Status CheckRoom(const QueueLimits& limits);

// `queue` outlives the service; a call that waits returns once it is closed.
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

}  // namespace thinwire
