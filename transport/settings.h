// What the data plane asks of gRPC: names on the wire, limits, windows, keepalive.
#pragma once

#include <string>

#include "grpcpp/grpcpp.h"

namespace thinwire {

// Call metadata: the secret of the run's links, and what names a boundary, in decimal.
constexpr char kSecretMetadata[] = "thinwire-link-secret-bin";
constexpr char kRunMetadata[] = "thinwire-run";
constexpr char kGenerationMetadata[] = "thinwire-generation";
constexpr char kCutMetadata[] = "thinwire-cut";
// Over a Unix socket: the dialling end's SharedMemory::Ticket; in the answer that the other end has
// opened it.
constexpr char kMemoryMetadata[] = "thinwire-memory";
constexpr char kExchangeMethod[] = "/thinwire.Boundary/Exchange";

// What a process that uses links needs once; later calls do nothing. Keeps gRPC's threads until the
// process ends: the last channel or server to go would end them, which at times takes 10 s (gRPC
// 1.51 sleeps through its own shutdown). Keeps freed memory for the next slices: else every
// received byte costs a page fault (TCP loopback: 38 % of a bare socket, with it 65 %).
void PrepareProcess();

bool IsUnixSocket(const std::string& address);

// For a channel that carries one boundary and nothing else.
grpc::ChannelArguments DataChannelArguments(const std::string& target);

// The server's side of the same, and its limits: streams of a connection, time for a handshake,
// time that a connection may be there without a call; for one that listens at `address`
// ("unix:/path", "host:port").
void PrepareDataServer(const std::string& address, grpc::ServerBuilder* builder);

}  // namespace thinwire
