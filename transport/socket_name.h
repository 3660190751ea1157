// Network addresses as text.
#pragma once

#include <sys/socket.h>

#include <string>

#include "absl/strings/string_view.h"

namespace thinwire {

// "127.0.0.1:4700" or "[::1]:4700"; IPv4 addresses that are mapped into IPv6 are given as IPv4.
// Empty for what is no network address, as of a Unix socket.
std::string SocketName(const sockaddr_storage& address);

// The same from what gRPC calls a peer, "ipv4:127.0.0.1:4700" or "ipv6:%5B::1%5D:4700".
std::string SocketNameOfPeer(absl::string_view peer);

}  // namespace thinwire
