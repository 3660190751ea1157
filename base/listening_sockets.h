// Sockets that listen at the addresses of a host: IPv4, IPv6 or those of a name.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/host_port.h"
#include "base/owned_descriptor.h"

namespace thinwire {

// Sockets with one port.
struct ListeningSockets {
  std::vector<OwnedDescriptor> sockets;  // non-blocking; at least one
  int port = 0;                          // of all of them
};

// Listens at all addresses of the host, at one port; port 0 lets the system choose it. For a host
// that means every address (IsEveryAddress) these are those of IPv4 and IPv6, if the machine has
// both. The message of Unavailable is only the reason: one of the addresses is taken, or there is
// no such name.
absl::StatusOr<ListeningSockets> ListenAt(const HostPort& at);

}  // namespace thinwire
