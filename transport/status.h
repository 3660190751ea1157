// The one place where an absl::Status becomes a gRPC status, and back.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace thinwire {

// Of a message that takes more on the wire, the beginning is sent: gRPC lets headers of 16 KiB
// through, and an error without its message would be the peer's.
inline constexpr size_t kMaxMessageBytes = 8 << 10;

// The two libraries number their codes alike.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The message is a peer's: as Printable has it.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace thinwire
