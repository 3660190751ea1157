// The queue of a server, as those see it who ask it.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/session/interruption.h"
#include "grpcpp/grpcpp.h"
#include "proto/queue.grpc.pb.h"
#include "security/security.h"

namespace thinwire {

// Makes a call of the queue at `server`, host:port, which is over after `patience`. A signal
// cancels it. Errors name the server, but for what it refuses (InvalidArgument, NotFound).
absl::Status CallQueue(const std::string& server, const Security& security, absl::Duration patience,
                       Interruption* interruption,
                       const std::function<grpc::Status(Queue::Stub*, grpc::ClientContext*)>& make);

}  // namespace thinwire
