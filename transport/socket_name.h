// Writes network addresses as text.
#pragma once

#include <sys/socket.h>

#include <string>

#include "absl/strings/string_view.h"

namespace thinwire {

// Returns "127.0.0.1:4700" or "[::1]:4700"; IPv4 addresses mapped into IPv6 are written as IPv4.
// Empty if it is no network address, such as a Unix socket.
std::string SocketName(const sockaddr_storage& address);

// Returns the same for gRPC's name of a peer, "ipv4:127.0.0.1:4700" or "ipv6:%5B::1%5D:4700".
std::string SocketNameOfPeer(absl::string_view peer);

}  // namespace thinwire
