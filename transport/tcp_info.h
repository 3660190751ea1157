// What the kernel counts of a TCP connection that gRPC owns.
#pragma once

#include <cstdint>
#include <string>

namespace thinwire {

// tcpi_bytes_acked of this process's established TCP connection to `peer`, spelled as gRPC does
// ("ipv4:127.0.0.1:4700", "ipv6:%5B::1%5D:4700"); of several, that of the busiest, since what else
// a process has to say to a stage is little. 0 when there is none, as for Unix sockets. Looks
// through all open files: for now and then, not for every message.
uint64_t TcpBytesAcked(const std::string& peer);

// tcpi_bytes_received of that connection; 0 for anything else.
uint64_t TcpBytesReceived(int fd);

}  // namespace thinwire
