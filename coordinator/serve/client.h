// The queue of a server, as those see it who ask it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/session/interruption.h"
#include "grpcpp/grpcpp.h"
#include "proto/queue.grpc.pb.h"
#include "security/security.h"

namespace thinwire {

class QueueClient {
 public:
  // `server`: host:port. A signal cancels the call under way; `interruption` outlives the client.
  QueueClient(std::string server, Security security, Interruption* interruption);

  // Makes a call, which is over after `patience`. Errors name the server, but for what it refuses
  // (InvalidArgument, NotFound).
  absl::Status Call(absl::Duration patience,
                    const std::function<grpc::Status(Queue::Stub*, grpc::ClientContext*)>& make);

 private:
  absl::Status Error(const grpc::Status& status) const;

  const std::string server_;
  const Security security_;
  Interruption& interruption_;
  std::unique_ptr<Queue::Stub> stub_;
};

}  // namespace thinwire
