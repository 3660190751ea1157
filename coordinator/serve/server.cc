#include "coordinator/serve/server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "coordinator/fleet/host_port.h"
#include "grpcpp/health_check_service_interface.h"

namespace thinwire {
namespace {

// Each call that waits has a thread of its own.
constexpr int kMostThreads = 256;
// Callers see by pings that the server is there; no more often than this.
constexpr int kPingMilliseconds = 5000;

absl::Status CannotListen(const std::string& listen, const char* why) {
  return absl::UnavailableError(
      absl::StrCat("cannot serve on ", listen, ": ", why, "; see --listen"));
}

// What the system says of the address, which gRPC keeps to itself.
absl::Status CheckFree(const std::string& listen) {
  const absl::StatusOr<HostPort> target = ParseHostPort(listen);
  if (!target.ok()) return target.status();
  std::string host = target->host;
  if (host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(target->port).c_str(), &hints, &found);
  if (error != 0) return CannotListen(listen, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool is_free = bind(fd, found->ai_addr, found->ai_addrlen) == 0 && ::listen(fd, 1) == 0;
  const int reason = errno;
  close(fd);
  return is_free ? absl::OkStatus() : CannotListen(listen, std::strerror(reason));
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueueServer>> QueueServer::Start(const std::string& listen,
                                                                QueueService* service,
                                                                const Security& security) {
  RETURN_IF_ERROR(CheckFree(listen));
  std::unique_ptr<QueueServer> server(new QueueServer);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  // Another server at the same port would get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kPingMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int port = 0;
  builder.AddListeningPort(listen, security.ServerCredentials(), &port);
  builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) return CannotListen(listen, "the address is taken");
  server->address_ = absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
  return server;
}

QueueServer::~QueueServer() {
  if (server_ == nullptr) return;
  server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  server_->Wait();
}

}  // namespace thinwire
