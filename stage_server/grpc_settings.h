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

// For a channel that carries one boundary and nothing else.
grpc::ChannelArguments DataChannelArguments(const std::string& target);

// The server's side of the same, for one that listens at `address` ("unix:/path", "host:port").
void PrepareDataServer(const std::string& address, grpc::ServerBuilder* builder);

}  // namespace thinwire
