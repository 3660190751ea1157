// Makes connected links for the tests and the benchmark of links.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "transport/boundary_service.h"
#include "wire/link_testing.h"

namespace thinwire {

// A server with a boundary service at a free address.
class TestServer {
 public:
  enum class Socket { kUnix, kTcp };
  explicit TestServer(Socket socket);
  ~TestServer();

  const std::string& address() const { return address_; }
  BoundaryService* service() { return service_.get(); }
  // Ends all calls, as the destructor does.
  void Stop();

 private:
  std::string folder_;  // folder of the Unix socket, or empty
  std::string address_;
  std::unique_ptr<BoundaryService> service_;
  std::unique_ptr<grpc::Server> server_;
};

enum class Transport { kMemory, kUnix, kTcp };

// Both ends of one cut, connected.
struct ConnectedLinks {
  explicit ConnectedLinks(Transport transport,
                          const LinkOptions& upstream_options = UpstreamOptions(),
                          const LinkOptions& downstream_options = DownstreamOptions());

  std::unique_ptr<TestServer> server;  // null for kMemory
  std::unique_ptr<Link> downstream;
  std::unique_ptr<Link> upstream;
};

}  // namespace thinwire
