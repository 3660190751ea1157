// Where a server listens, apart from gRPC, whose own listener goes for good with the first
// connection that the process has no descriptor for (gRPC 1.51). This one waits until there is one
// again, and bounds how many connections there are at once.
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
  size_t most = 64;           // connections at once; further ones are closed as they come
  size_t most_of_host = 16;   // of one network address; not of Unix sockets
  size_t most_refusals = 64;  // of a connection's calls, then it is closed: see Refused
  // That a TCP connection may send before it is trusted, then it is closed: see Trust. What gRPC
  // holds of calls that nobody has looked at yet is bounded by nothing else, since peers may choose
  // to overlook its settings.
  uint64_t most_untrusted_bytes = 8 << 20;
};

class Listener {
 public:
  // Listens at "unix:/path" (a socket there that nobody listens at is replaced) or "host:port", at
  // all addresses of the host (ListenAt); port 0 lets the system choose. Unavailable, or
  // InvalidArgument for what is no address, name it.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address,
                                                        const ConnectionLimits& limits);
  ~Listener();

  // With the port that was taken.
  const std::string& address() const { return address_; }

  // Before the server is built: hands all connections to it, by these credentials.
  void AddTo(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials);

  // Once the server serves. `complain` hears why connections are closed, now and then.
  void Start(std::function<void(const std::string&)> complain);
  // Before the server ends. Idempotent.
  void Stop();

  // A call of the peer, as ServerContext::peer() names it, was refused: a connection with too many
  // of these is reset, with all that it still holds for us to read. Any thread.
  void Refused(const std::string& peer);
  // The peer, as ServerContext::peer() names it, has shown that it belongs to a run. Any thread.
  void Trust(const std::string& peer);

 private:
  // A descriptor that is gRPC's: it is this connection as long as its inode is.
  struct Connection {
    int fd = -1;
    uint64_t inode = 0;
    std::string peer;  // as SocketName has it
    size_t refusals = 0;
    bool is_trusted = false;
  };

  Listener(std::string address, const ConnectionLimits& limits)
      : address_(std::move(address)), limits_(limits) {}
  absl::Status BindUnix(const std::string& path);
  absl::Status BindHost();
  void AcceptLoop();
  void AcceptAll(int listening);
  // Why the connection is not to be had; empty when it is.
  std::string Admit(const Connection& connection);
  // Resets who has sent too much without being trusted. False: there is nobody to look after.
  bool WatchUntrusted();
  void Complain(const std::string& why);

  std::string address_, unix_path_;
  const ConnectionLimits limits_;
  std::vector<OwnedDescriptor> listening_;
  int stop_[2] = {-1, -1};  // a pipe: closing one end wakes the accepting thread
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::function<void(const std::string&)> complain_;
  std::map<std::string, SteadyTime> complained_;  // when, by reason; of the accepting thread
  std::mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace thinwire
