// Settings of the data plane for gRPC: names on the wire, limits, windows, keepalive.
#pragma once

#include <optional>
#include <string>

#include "grpcpp/grpcpp.h"

namespace thinwire {

// Names of call metadata: the secret of the run's links, and what names a boundary, in decimal.
constexpr char kSecretMetadata[] = "thinwire-link-secret-bin";
constexpr char kRunMetadata[] = "thinwire-run";
constexpr char kGenerationMetadata[] = "thinwire-generation";
constexpr char kCutMetadata[] = "thinwire-cut";
// Name of the dialling end's SharedMemory::Ticket, over a Unix socket. In the answer it says that
// the other end has opened the memory.
constexpr char kMemoryMetadata[] = "thinwire-memory";
// Name of an end's ReceivingDeviceSlots::Ticket, in both directions.
constexpr char kDeviceMemoryMetadata[] = "thinwire-device-memory";
constexpr char kExchangeMethod[] = "/thinwire.Boundary/Exchange";

// Prepares a process that uses links; later calls do nothing. It keeps gRPC's threads until the
// process ends. Otherwise the last channel or server to go would end them, which can take 10 s
// (gRPC 1.51 sleeps through its own shutdown). It also keeps freed memory for later slices.
// Otherwise each received byte costs a page fault (TCP loopback: 38 % of a bare socket's rate, with
// it 65 %).
void PrepareProcess();

bool IsUnixSocket(const std::string& address);

// Returns arguments for a channel that carries one boundary, or the state of a stage, and nothing
// else. `window` is the most bytes that may be under way to this end; absent: as many as fill the
// line.
grpc::ChannelArguments DataChannelArguments(const std::string& target,
                                            std::optional<int> window = std::nullopt);

// Sets the same on a server that listens at `address` ("unix:/path", "host:port"). Also sets
// limits: streams of a connection, time for a handshake, and time that a connection may exist
// without a call.
void PrepareDataServer(const std::string& address, grpc::ServerBuilder* builder);

}  // namespace thinwire
