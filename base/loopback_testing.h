// Connections to this machine by IPv4 and IPv6 addresses, for tests.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "base/owned_descriptor.h"

namespace thinwire {

// Returns a connected, blocking socket to the first address of `host` that accepts; negative if
// none does.
inline OwnedDescriptor ConnectedTo(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return OwnedDescriptor(-1);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    OwnedDescriptor fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
  }
  return OwnedDescriptor(-1);
}

inline bool Answers(const std::string& host, int port) {
  return ConnectedTo(host, port).get() >= 0;
}

// Returns whether this machine has ::1; tests that need it are skipped otherwise.
inline bool HasLoopback6() {
  addrinfo hints = {};
  hints.ai_family = AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo("::1", "0", &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  const OwnedDescriptor fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd.get() >= 0 && bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0;
}

}  // namespace thinwire
