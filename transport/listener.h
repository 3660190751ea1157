// Accepts connections in place of gRPC. gRPC's own listener (1.51) stops for good at the first
// connection for which the process has no descriptor left. This one waits until there is one, and
// limits how many connections exist at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/owned_descriptor.h"
#include "base/steady_time.h"
#include "grpcpp/grpcpp.h"

namespace thinwire {

struct ConnectionLimits {
  size_t most = 64;           // connections at once; others are closed on arrival
  size_t most_of_host = 16;   // connections from one network address; not for Unix sockets
  size_t most_refusals = 64;  // refused calls before a connection is closed: see Refused
  // Bytes that a TCP connection may send before it is trusted (see Trust); then it is closed.
  // Nothing else bounds what gRPC holds of calls that nobody has read yet, since peers may ignore
  // its settings.
  uint64_t most_untrusted_bytes = 8 << 20;
};

class Listener {
 public:
  // Listens at "unix:/path" or "host:port". A Unix socket that nobody listens at is replaced.
  // "host:port" listens at all addresses of the host (ListenAt), and port 0 lets the system choose.
  // Unavailable, or InvalidArgument if it is no address, name the address.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address,
                                                        const ConnectionLimits& limits);
  ~Listener();

  // Returns the address with the port in use.
  const std::string& address() const { return address_; }

  // Hands all connections to the server, with these credentials. Called before the server is built.
  void AddTo(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials);

  // Begins to accept, once the server serves. `complain` is called now and then with the reason why
  // connections are closed.
  void Start(std::function<void(const std::string&)> complain);
  // Stops accepting, before the server ends. Idempotent.
  void Stop();

  // Counts a refused call of the peer, as ServerContext::peer() names it. A connection with too
  // many of them is reset and its unread bytes are dropped. Any thread.
  void Refused(const std::string& peer);
  // Marks the peer, as ServerContext::peer() names it, as belonging to a run. Any thread.
  void Trust(const std::string& peer);

 private:
  // A connection whose descriptor gRPC owns. The descriptor still is this connection while its
  // inode is the same.
  struct Connection {
    int fd = -1;
    uint64_t inode = 0;
    std::string peer;  // as SocketName writes it
    size_t refusals = 0;
    bool is_trusted = false;
  };

  Listener(std::string address, const ConnectionLimits& limits)
      : address_(std::move(address)), limits_(limits) {}
  absl::Status BindUnix(const std::string& path);
  absl::Status BindHost();
  void AcceptLoop();
  void AcceptAll(int listening);
  // Returns why the connection is refused; empty if it is admitted.
  std::string Admit(const Connection& connection);
  // Resets connections that have sent too much without being trusted. Returns whether any must
  // still be watched.
  bool WatchUntrusted();
  void Complain(const std::string& why);

  std::string address_, unix_path_;
  const ConnectionLimits limits_;
  std::vector<OwnedDescriptor> listening_;
  int stop_[2] = {-1, -1};  // a pipe; closing its end [1] wakes the accepting thread
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::function<void(const std::string&)> complain_;
  std::map<std::string, SteadyTime> complained_;  // last time by reason; for the accepting thread
  std::mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace thinwire
