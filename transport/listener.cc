#include "transport/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/listening_sockets.h"
#include "base/status.h"
#include "transport/sockets.h"

namespace thinwire {
namespace {

constexpr int kBacklog = 4096;  // the system cuts it to its own limit
constexpr std::chrono::milliseconds kNextTry{100};
constexpr int kWatchEveryMs = 20;
constexpr absl::Duration kComplainEvery = absl::Seconds(10);
constexpr char kUnix[] = "unix:";

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
}

// Returns 0 if `fd` is no open descriptor.
uint64_t InodeOf(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

// Connecting to AF_UNSPEC dissolves the association and drops received bytes that were not read;
// shutdown alone would keep them.
void Reset(int fd) {
  sockaddr nobody = {};
  nobody.sa_family = AF_UNSPEC;
  (void)connect(fd, &nobody, sizeof(nobody));
  (void)shutdown(fd, SHUT_RDWR);
}

bool SomebodyListensAt(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno == ECONNREFUSED;
  if (fd >= 0) close(fd);
  return !refused;
}

// Returns "127.0.0.1" of "127.0.0.1:4700".
absl::string_view HostOf(absl::string_view name) { return name.substr(0, name.rfind(':')); }

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const std::string& address,
                                                         const ConnectionLimits& limits) {
  std::unique_ptr<Listener> listener(new Listener(address, limits));
  if (pipe2(listener->stop_, O_CLOEXEC) != 0) return CannotListen(address, std::strerror(errno));
  if (absl::StartsWith(address, kUnix)) {
    RETURN_IF_ERROR(listener->BindUnix(address.substr(std::strlen(kUnix))));
    return listener;
  }
  RETURN_IF_ERROR(listener->BindHost());
  return listener;
}

absl::Status Listener::BindUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address_, ": a path of ",
                                                   path.size(), " bytes, want 1 to ",
                                                   sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  struct stat about;
  const bool is_socket = lstat(path.c_str(), &about) == 0 && S_ISSOCK(about.st_mode);
  // Removes a socket that an earlier server left behind; bind would fail on it.
  if (is_socket && !SomebodyListensAt(address)) unlink(path.c_str());
  OwnedDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return CannotListen(address_, std::strerror(errno));
  }
  listening_.push_back(std::move(fd));
  unix_path_ = path;
  return absl::OkStatus();
}

absl::Status Listener::BindHost() {
  const absl::StatusOr<HostPort> at = ParseHostPort(address_);
  if (!at.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address_, ": ",
                                                   at.status().message(), "; or unix:/path"));
  }
  absl::StatusOr<ListeningSockets> sockets = ListenAt(*at);
  if (!sockets.ok()) return CannotListen(address_, sockets.status().message());
  listening_ = std::move(sockets->sockets);
  address_ = HostPort{at->host, sockets->port}.Text();
  return absl::OkStatus();
}

Listener::~Listener() {
  Stop();
  if (stop_[0] >= 0) close(stop_[0]);
  if (!unix_path_.empty()) unlink(unix_path_.c_str());
}

void Listener::AddTo(grpc::ServerBuilder* builder,
                     std::shared_ptr<grpc::ServerCredentials> credentials) {
  acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
}

void Listener::Start(std::function<void(const std::string&)> complain) {
  complain_ = std::move(complain);
  thread_ = std::thread([this] { AcceptLoop(); });
}

void Listener::Stop() {
  // Closing the pipe's writing end wakes the thread's poll.
  if (stop_[1] >= 0) close(std::exchange(stop_[1], -1));
  if (thread_.joinable()) thread_.join();
}

void Listener::AcceptLoop() {
  std::vector<pollfd> entries = {{stop_[0], POLLIN, 0}};
  for (const OwnedDescriptor& fd : listening_) entries.push_back({fd.get(), POLLIN, 0});
  for (;;) {
    const int timeout = WatchUntrusted() ? kWatchEveryMs : -1;
    if (poll(entries.data(), entries.size(), timeout) < 0) continue;  // EINTR
    if (entries.front().revents != 0) return;
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].revents != 0) AcceptAll(entries[i].fd);
    }
  }
}

void Listener::AcceptAll(int listening) {
  for (;;) {
    sockaddr_storage from = {};
    socklen_t size = sizeof(from);
    const int fd =
        accept4(listening, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      Complain(absl::StrCat("cannot accept: ", std::strerror(errno)));
      pollfd end = {stop_[0], POLLIN, 0};
      poll(&end, 1, static_cast<int>(kNextTry.count()));  // waits: the shortage may pass
      return;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // no effect on a Unix socket
    const Connection connection = {fd, InodeOf(fd), SocketName(from)};
    const std::string refused = Admit(connection);
    if (!refused.empty()) {
      Complain(refused);
      close(fd);
      continue;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listening;
    parameters.fd = fd;
    acceptor_->HandleNewConnection(&parameters);
  }
}

std::string Listener::Admit(const Connection& connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Forgets connections that gRPC has closed: their descriptor is free or names another socket.
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(),
                                    [&](const Connection& one) {
                                      return one.fd == connection.fd ||
                                             InodeOf(one.fd) != one.inode;
                                    }),
                     connections_.end());
  if (connections_.size() >= limits_.most) {
    return absl::StrCat("there are ", limits_.most, " connections, no more are accepted");
  }
  const auto of_host =
      std::count_if(connections_.begin(), connections_.end(), [&](const Connection& one) {
        return !one.peer.empty() && HostOf(one.peer) == HostOf(connection.peer);
      });
  if (static_cast<size_t>(of_host) >= limits_.most_of_host) {
    return absl::StrCat("there are ", of_host, " connections of ", HostOf(connection.peer),
                        ", no more of it are accepted");
  }
  connections_.push_back(connection);
  return "";
}

void Listener::Refused(const std::string& peer) {
  const std::string name = SocketNameOfPeer(peer);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Connection& one : connections_) {
    if (name.empty() || one.peer != name || ++one.refusals < limits_.most_refusals) continue;
    if (InodeOf(one.fd) != one.inode) continue;
    Reset(one.fd);
    one.refusals = 0;
  }
}

void Listener::Trust(const std::string& peer) {
  const std::string name = SocketNameOfPeer(peer);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Connection& one : connections_) one.is_trusted |= !name.empty() && one.peer == name;
}

// A peer on a Unix socket shares the machine's file system; it has an empty name and is not
// watched.
bool Listener::WatchUntrusted() {
  const std::lock_guard<std::mutex> lock(mutex_);
  bool is_any = false;
  for (Connection& one : connections_) {
    if (one.is_trusted || one.peer.empty() || InodeOf(one.fd) != one.inode) continue;
    is_any = true;
    const uint64_t received = TcpBytesReceived(one.fd);
    if (received <= limits_.most_untrusted_bytes) continue;
    Complain(absl::StrCat(HostOf(one.peer), " has sent ", received,
                          " bytes that belong to no run: its connection is closed"));
    Reset(one.fd);
    one.inode = 0;  // forget it, even if the descriptor is still open
  }
  return is_any;
}

void Listener::Complain(const std::string& why) {
  const SteadyTime now = SteadyTime::Now();
  if (complained_.size() > 100) complained_.clear();  // bounded, since reasons name hosts
  const auto [told, is_new] = complained_.emplace(why, now);
  if (!is_new && now - told->second < kComplainEvery) return;
  told->second = now;
  complain_(why);
}

}  // namespace thinwire
