// Sockets that listen where a user says: at addresses of IPv4, of IPv6 and at those of a name.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/host_port.h"
#include "base/owned_descriptor.h"

namespace thinwire {

struct ListeningSockets {
  std::vector<OwnedDescriptor> sockets;  // that do not block; at least one
  int port = 0;                          // of all of them
};

// Listens at all addresses of the host, at one port; port 0 lets the system choose it. Who asks for
// every address (IsEveryAddress) gets those of IPv4 and of IPv6, where the machine has both.
// Unavailable says only why not: that one of the addresses is taken, that there is no such name.
absl::StatusOr<ListeningSockets> ListenAt(const HostPort& at);

}  // namespace thinwire
