#include "base/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace thinwire {
namespace {

constexpr int kBacklog = 4096;  // the system reduces it to its own limit
// Ports to try: one that is free at one address of a name may be taken at another.
constexpr int kMostPortsTried = 16;

// Both families have the port at the same offset.
in_port_t* PortIn(sockaddr* address) { return &reinterpret_cast<sockaddr_in*>(address)->sin_port; }

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(*PortIn(reinterpret_cast<sockaddr*>(&address)));
}

// Adds a socket. Returns 0, or the errno value that says why there is none.
int AddSocket(const addrinfo& at, ListeningSockets* listening) {
  OwnedDescriptor fd(socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return errno;
  const int on = 1, off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (at.ai_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(fd.get(), at.ai_addr, at.ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) {
    return errno;
  }
  listening->port = PortOf(fd.get());
  listening->sockets.push_back(std::move(fd));
  return 0;
}

// Adds sockets for all addresses. An address that the machine lacks is skipped. One that is taken
// is an error: clients would take the other server there for this one.
int AddAll(const addrinfo* addresses, int port, ListeningSockets* listening) {
  int error = 0;
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next) {
    const int wanted = listening->sockets.empty() ? port : listening->port;
    *PortIn(one->ai_addr) = htons(static_cast<in_port_t>(wanted));
    const int failed = AddSocket(*one, listening);
    if (failed == EADDRINUSE) return failed;
    if (failed != 0) error = failed;
  }
  return listening->sockets.empty() ? error : 0;
}

// Returns whether IPv6 works; the system may have been started without it.
bool HasIpv6() {
  const OwnedDescriptor any(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return any.get() >= 0 || errno != EAFNOSUPPORT;
}

}  // namespace

absl::StatusOr<ListeningSockets> ListenAt(const HostPort& at) {
  // The wildcard of IPv6 covers IPv4, too.
  const std::string host = !IsEveryAddress(at.host) ? at.host : HasIpv6() ? "::" : "0.0.0.0";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::UnavailableError(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  ListeningSockets listening;
  int error = AddAll(found, at.port, &listening);
  for (int tried = 1; error == EADDRINUSE && at.port == 0 && tried < kMostPortsTried; ++tried) {
    listening.sockets.clear();
    error = AddAll(found, at.port, &listening);
  }
  if (error != 0) return absl::UnavailableError(std::strerror(error));
  return listening;
}

}  // namespace thinwire
