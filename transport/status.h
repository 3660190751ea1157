// Converts an absl::Status to a gRPC status and back; nothing else does so.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace thinwire {

// Most bytes that a message takes on the wire. Only the beginning of a longer one is sent, because
// gRPC lets headers of 16 KiB through: a larger one would reach the peer as an error without its
// message.
inline constexpr size_t kMaxMessageBytes = 8 << 10;

// Converts a status; the two libraries number their codes alike.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Converts a peer's status; its message is made Printable.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace thinwire
