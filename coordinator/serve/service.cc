#include "coordinator/serve/service.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/annotated.h"
#include "base/host_port.h"
#include "base/listening_sockets.h"
#include "base/status.h"
#include "base/text.h"
#include "config/experiment.h"
#include "coordinator/fleet/stage_addresses.h"
#include "grpcpp/health_check_service_interface.h"

namespace thinwire {
namespace {

constexpr size_t kMostErrorBytes = 2000;  // longest message of an error, which travels in a header
constexpr size_t kPieceBytes = 64 << 10;  // of a log, sent at once
constexpr absl::Duration kLook = absl::Milliseconds(100);

grpc::Status ToGrpc(const absl::Status& status) {
  std::string message = Printable(std::string(status.message()));
  if (message.size() > kMostErrorBytes) message = message.substr(0, kMostErrorBytes) + " ...";
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

absl::Status ServerEnds() { return absl::UnavailableError("the server ends; the queue is kept"); }

// Reads the next piece of a growing file: whole lines, unless it has ended or a line is longer than
// a piece.
class Tail {
 public:
  explicit Tail(std::string path) : path_(std::move(path)) {}

  std::string Next(bool has_ended) {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(offset_);
    std::string piece(kPieceBytes, '\0');
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    piece.resize(static_cast<size_t>(file.gcount()));
    const size_t end = piece.rfind('\n');
    const bool is_cut = end == piece.npos && piece.size() < kPieceBytes;
    if (end != piece.npos) {
      piece.resize(end + 1);
    } else if (is_cut && !has_ended) {
      piece.clear();
    }
    offset_ += static_cast<std::streamoff>(piece.size());
    return piece;
  }

 private:
  const std::string path_;
  std::streamoff offset_ = 0;
};

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

absl::Status CheckRoom(const QueueLimits& limits) {
  std::error_code error;
  const auto space = std::filesystem::space(limits.dir, error);
  if (error || space.available >= limits.least_free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(limits.dir, ": the disk has room for ",
                                                   space.available >> 20, " MiB, want ",
                                                   limits.least_free_bytes >> 20));
}

absl::Status QueueService::Check(const grpc::ServerContext& context) const {
  return security_.Check(context, Role::kCoordinator);
}

absl::StatusOr<Experiment> QueueService::Accepted(const SubmitRequest::File& file,
                                                  const std::vector<std::string>& overrides) const {
  ASSIGN_OR_RETURN(const int stages, StagesOfGroups(limits_.groups));
  ASSIGN_OR_RETURN(Experiment experiment, ParseExperiment(file.text(), file.name(), overrides,
                                                          {static_cast<uint32_t>(stages)}));
  if (limits_.groups.empty()) return experiment;
  ASSIGN_OR_RETURN(const StageAddresses named,
                   StageAddresses::Parse(absl::StrSplit(limits_.groups.front(), ',')));
  std::vector<std::string> spares;
  const int wanted = static_cast<int>(experiment.pipeline().stages());
  RETURN_IF_ERROR(Annotated(named.For({1, wanted}, &spares).status(),
                            absl::StrCat(file.name(), ": the server's --stages")));
  return experiment;
}

absl::Status QueueService::Take(const SubmitRequest& request, SubmitResponse* response) {
  if (request.experiments().empty()) return absl::InvalidArgumentError("no experiment, want one");
  const std::vector<std::string> overrides(request.overrides().begin(), request.overrides().end());
  std::vector<Experiment> experiments;
  for (const SubmitRequest::File& file : request.experiments()) {
    ASSIGN_OR_RETURN(Experiment experiment, Accepted(file, overrides));
    experiments.push_back(std::move(experiment));
  }
  RETURN_IF_ERROR(CheckRoom(limits_));
  ASSIGN_OR_RETURN(const std::vector<std::string> runs, queue_.Submit(experiments));
  for (const std::string& run : runs) response->add_runs(run);
  return absl::OkStatus();
}

grpc::Status QueueService::Submit(grpc::ServerContext* context, const SubmitRequest* request,
                                  SubmitResponse* response) {
  const absl::Status caller = Check(*context);
  return ToGrpc(caller.ok() ? Take(*request, response) : caller);
}

absl::Status QueueService::Follow(const grpc::ServerContext& context, const std::string& run,
                                  grpc::ServerWriter<WatchEvent>* events) {
  Tail log(queue_.LogOf(run));
  std::string said;  // last text about a run that waits
  while (true) {
    // The status is read before the log, so that the log of an ended run has all its lines.
    ASSIGN_OR_RETURN(const QueuedRunStatus status, queue_.Find(run));
    WatchEvent event;
    std::string text = log.Next(status.has_exit_code());
    if (text.empty() && status.has_exit_code()) {
      *event.mutable_end() = status;
      events->Write(event);
      return absl::OkStatus();
    }
    if (text.empty() && status.state() == "waits" && status.progress() != said) {
      said = status.progress();
      text = absl::StrCat(run, " waits: ", said, "\n");
    }
    if (!text.empty()) {
      event.set_text(text);
      if (!events->Write(event)) return absl::CancelledError("the caller has left");
      continue;
    }
    queue_.AwaitEnd(run, kLook);
    if (context.IsCancelled()) return absl::CancelledError("the caller has left");
    if (queue_.is_closed()) return ServerEnds();
  }
}

grpc::Status QueueService::Watch(grpc::ServerContext* context, const WatchRequest* request,
                                 grpc::ServerWriter<WatchEvent>* events) {
  const absl::Status caller = Check(*context);
  return ToGrpc(caller.ok() ? Follow(*context, request->run(), events) : caller);
}

grpc::Status QueueService::List(grpc::ServerContext* context, const ListRequest*,
                                ListResponse* response) {
  const absl::Status caller = Check(*context);
  if (!caller.ok()) return ToGrpc(caller);
  for (QueuedRunStatus& run : queue_.List()) *response->add_runs() = std::move(run);
  return grpc::Status::OK;
}

absl::Status QueueService::End(const grpc::ServerContext& context, const std::string& run,
                               QueuedRunStatus* status) {
  RETURN_IF_ERROR(queue_.Cancel(run));
  while (!queue_.AwaitEnd(run, kLook)) {
    if (context.IsCancelled()) return absl::CancelledError("the caller has left");
    if (queue_.is_closed()) return ServerEnds();
  }
  ASSIGN_OR_RETURN(*status, queue_.Find(run));
  return absl::OkStatus();
}

grpc::Status QueueService::Cancel(grpc::ServerContext* context, const CancelRequest* request,
                                  CancelResponse* response) {
  const absl::Status caller = Check(*context);
  return ToGrpc(caller.ok() ? End(*context, request->run(), response->mutable_run()) : caller);
}

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
