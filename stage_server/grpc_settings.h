// What the data plane asks of gRPC: names on the wire, limits, windows, keepalive.
#pragma once

#include <string>

#include "grpcpp/grpcpp.h"

namespace thinwire {

// Call metadata that names a boundary; the values are decimal.
constexpr char kRunMetadata[] = "thinwire-run";
constexpr char kGenerationMetadata[] = "thinwire-generation";
constexpr char kCutMetadata[] = "thinwire-cut";
constexpr char kExchangeMethod[] = "/thinwire.Boundary/Exchange";

// Keeps gRPC's threads for the rest of the process. Without it the last channel or server to go
// ends them, which at times takes 10 s (a poller that sleeps through the shutdown, gRPC 1.51).
void KeepGrpc();

// For a channel that carries one boundary and nothing else.
grpc::ChannelArguments DataChannelArguments(const std::string& target);

// The server's side of the same, for one that listens at `address` ("unix:/path", "host:port").
void PrepareDataServer(const std::string& address, grpc::ServerBuilder* builder);

}  // namespace thinwire
