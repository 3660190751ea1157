// The one place where an absl::Status becomes a gRPC status.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace thinwire {

inline grpc::Status ToGrpcStatus(const absl::Status& status) {
  // The two libraries number their codes alike.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace thinwire
