// The gRPC server of the queue.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/serve/service.h"
#include "grpcpp/grpcpp.h"
#include "security/security.h"

namespace thinwire {

// Serves for as long as this object lives. Calls in flight are cancelled a second after its end
// begins.
class QueueServer {
 public:
  // At LISTEN, host:port; port 0 lets the system choose. `service` outlives the server. Unavailable
  // says what the system does when the address cannot be taken.
  static absl::StatusOr<std::unique_ptr<QueueServer>> Start(const std::string& listen,
                                                            QueueService* service,
                                                            const Security& security);
  ~QueueServer();

  // host:port, with the port that was taken.
  const std::string& address() const { return address_; }

 private:
  QueueServer() = default;

  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace thinwire
