#include "transport/link_testing.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "transport/dial.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  abort();
}

}  // namespace

TestServer::TestServer(Socket socket) : service_(NewBoundaryService()) {
  if (socket == Socket::kUnix) {
    char folder[] = "/tmp/thinwire-XXXXXX";
    if (mkdtemp(folder) == nullptr) Die("no temporary folder");
    folder_ = folder;
    address_ = absl::StrCat("unix:", folder_, "/link.sock");
  } else {
    address_ = "127.0.0.1:0";
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials(), &port);
  service_->Configure(address_, &builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) Die(absl::StrCat("cannot listen at ", address_));
  if (socket == Socket::kTcp) address_ = absl::StrCat("127.0.0.1:", port);
}

void TestServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
  server_->Wait();
  server_ = nullptr;
}

TestServer::~TestServer() {
  Stop();
  if (!folder_.empty()) rmdir(folder_.c_str());
}

ConnectedLinks::ConnectedLinks(Transport transport, const LinkOptions& upstream_options,
                               const LinkOptions& downstream_options) {
  if (transport == Transport::kMemory) {
    std::tie(upstream, downstream) = NewMemoryLinks(upstream_options, downstream_options);
    return;
  }
  server = std::make_unique<TestServer>(transport == Transport::kUnix ? TestServer::Socket::kUnix
                                                                      : TestServer::Socket::kTcp);
  absl::StatusOr<std::unique_ptr<Link>> listening = server->service()->Listen(downstream_options);
  if (!listening.ok()) Die(listening.status().ToString());
  downstream = *std::move(listening);
  absl::StatusOr<std::unique_ptr<Link>> dialled =
      DialLink(server->address(), upstream_options, Security(), TestDeadline());
  if (!dialled.ok()) Die(dialled.status().ToString());
  upstream = *std::move(dialled);
}

}  // namespace thinwire
