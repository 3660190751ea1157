// The gRPC server of the queue.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/serve/service.h"
#include "grpcpp/grpcpp.h"
#include "security/security.h"

namespace thinwire {

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
