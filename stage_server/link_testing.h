// Messages, options and connected links for the tests and the benchmark of links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "stage_server/boundary_service.h"
#include "stage_server/link.h"

namespace thinwire {

// Of cut 3 in run 77, generation 5. The upstream end receives gradients, the downstream end
// activations.
LinkOptions UpstreamOptions();
LinkOptions DownstreamOptions();

// A training message of that cut with `payload_bytes` pseudorandom bytes; each microbatch has
// bytes of its own.
Message TestMessage(Direction direction, size_t payload_bytes, uint32_t microbatch = 0);

// Every field and byte the same.
bool SameMessage(const Message& a, const Message& b);

// A server with a boundary service at a free address.
class TestServer {
 public:
  enum class Socket { kUnix, kTcp };
  explicit TestServer(Socket socket);
  ~TestServer();

  const std::string& address() const { return address_; }
  BoundaryService* service() { return service_.get(); }
  // Ends all calls. The destructor does so too.
  void Stop();

 private:
  std::string folder_;  // of the Unix socket, or empty
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

  std::unique_ptr<TestServer> server;  // null in memory
  std::unique_ptr<Link> downstream;
  std::unique_ptr<Link> upstream;
};

// Far enough that only a defect meets it.
SteadyTime TestDeadline();

}  // namespace thinwire
