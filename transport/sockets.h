// Names and counters of sockets, as the system tells them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace thinwire {

// Writes network addresses as text.

// Returns "127.0.0.1:4700" or "[::1]:4700"; IPv4 addresses mapped into IPv6 are written as IPv4.
// Empty if it is no network address, such as a Unix socket.
std::string SocketName(const sockaddr_storage& address);

// Returns the same for gRPC's name of a peer, "ipv4:127.0.0.1:4700" or "ipv6:%5B::1%5D:4700".
std::string SocketNameOfPeer(absl::string_view peer);

// Reads the kernel's counters of a TCP connection that gRPC owns.

// Returns tcpi_bytes_acked of this process's established TCP connection to `peer`, spelled as gRPC
// does ("ipv4:127.0.0.1:4700", "ipv6:%5B::1%5D:4700"). Of several connections it takes the busiest,
// since a process has little else to say to a stage. Returns 0 if there is none, as for Unix
// sockets. It looks through all open files, so it is not meant for every message.
uint64_t TcpBytesAcked(const std::string& peer);

// Returns tcpi_bytes_received of the connection; 0 for anything else.
uint64_t TcpBytesReceived(int fd);

}  // namespace thinwire
