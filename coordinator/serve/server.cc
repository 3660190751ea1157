#include "coordinator/serve/server.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/host_port.h"
#include "base/listening_sockets.h"
#include "base/status.h"
#include "grpcpp/health_check_service_interface.h"

namespace thinwire {
namespace {

// Each call that waits has its own thread.
constexpr int kMostThreads = 256;
// Least interval of callers' pings, by which they see that the server is there.
constexpr int kPingMilliseconds = 5000;

absl::Status CannotListen(const std::string& listen, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot serve on ", listen, ": ", why, "; see --listen"));
}

// Returns the system's message about the address, which gRPC does not pass on.
absl::Status CheckFree(const HostPort& at) {
  const absl::Status listens = ListenAt(at).status();
  return listens.ok() ? listens : CannotListen(at.Text(), listens.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueueServer>> QueueServer::Start(const std::string& listen,
                                                                QueueService* service,
                                                                const Security& security) {
  ASSIGN_OR_RETURN(const HostPort at, ParseHostPort(listen));
  RETURN_IF_ERROR(CheckFree(at));
  std::unique_ptr<QueueServer> server(new QueueServer);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  // Without this, another server could share the port and get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kPingMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int port = 0;
  // gRPC's wildcard covers IPv4 and IPv6, too.
  builder.AddListeningPort(HostPort{IsEveryAddress(at.host) ? "::" : at.host, at.port}.Text(),
                           security.ServerCredentials(), &port);
  builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) return CannotListen(listen, "the address is taken");
  server->address_ = HostPort{at.host, port}.Text();
  return server;
}

QueueServer::~QueueServer() {
  if (server_ == nullptr) return;
  server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  server_->Wait();
}

}  // namespace thinwire
