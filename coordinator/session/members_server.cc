#include "coordinator/session/members_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/annotated.h"
#include "base/status.h"
#include "transport/status.h"

namespace thinwire {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr int kMostRequestBytes = 64 << 10;
constexpr int kKeepaliveMilliseconds = 10000;
// Connections of servers that are refused, beside those of the ones that have joined.
constexpr size_t kMostBesides = 64;
constexpr int kOwnThreads = 16;

// An offer that is known, until the call of it returns.
class Offered {
 public:
  Offered(Joins* joins, std::string address) : joins_(*joins), address_(std::move(address)) {}
  ~Offered() { joins_.Withdraw(address_); }
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;

 private:
  Joins& joins_;
  const std::string address_;
};

}  // namespace

MembershipService::MembershipService(Joins* joins, const Experiment* experiment, Security security,
                                     OnPeer trust, OnPeer refuse, Say say)
    : joins_(*joins),
      experiment_(*experiment),
      security_(std::move(security)),
      trust_(std::move(trust)),
      refuse_(std::move(refuse)),
      say_(std::move(say)) {}

grpc::Status MembershipService::Join(grpc::ServerContext* context, const JoinRequest* request,
                                     grpc::ServerWriter<JoinEvent>* events) {
  absl::Status status = security_.Check(*context, Role::kStage);
  if (status.ok()) status = CheckOffered(request->address(), context->peer());
  const absl::StatusOr<bool> has_stage =
      status.ok() ? joins_.Offer(*request) : absl::StatusOr<bool>(status);
  if (!has_stage.ok()) {
    refuse_(context->peer());
    return ToGrpcStatus(has_stage.status());
  }
  const Offered until_return(&joins_, request->address());
  if (!*has_stage) status = Try(*request);
  if (!status.ok()) {
    refuse_(context->peer());
    return ToGrpcStatus(status);
  }
  trust_(context->peer());
  return ToGrpcStatus(Follow(*context, request->address(), events));
}

absl::StatusOr<TriedServer> MembershipService::Tried(const std::string& address) {
  Trial trial(address, joins_.lease(), &experiment_, security_);
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return absl::UnavailableError("the run ends");
    trials_.insert(&trial);
  }
  auto tried = trial.Run();
  absl::MutexLock lock(&mutex_);
  trials_.erase(&trial);
  return tried;
}

void MembershipService::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (Trial* const trial : trials_) trial->Cancel();
}

absl::Status MembershipService::Try(const JoinRequest& offer) {
  const std::string& address = offer.address();
  const auto tried = Tried(address);
  if (!tried.ok()) {
    return Annotated(tried.status(), absl::StrCat("run ", joins_.run(), " has tried ", address));
  }
  RETURN_IF_ERROR(joins_.Admit(address, *tried));
  say_(absl::StrFormat("%s joins: %d cores, %.1f GB of memory", address, offer.cores(),
                       static_cast<double>(offer.memory_bytes()) / 1e9));
  return absl::OkStatus();
}

absl::Status MembershipService::Follow(const grpc::ServerContext& context,
                                       const std::string& address,
                                       grpc::ServerWriter<JoinEvent>* events) {
  JoinEvent event;
  event.set_run(joins_.run());
  events->Write(event);
  for (;; absl::SleepFor(kLook)) {
    if (context.IsCancelled()) return absl::CancelledError("the server has left");
    ASSIGN_OR_RETURN(const bool has_ended, joins_.HasEnded(address));
    if (!has_ended) continue;
    event.set_has_ended(true);
    events->Write(event);
    return absl::OkStatus();
  }
}

absl::StatusOr<std::unique_ptr<MembersServer>> MembersServer::Start(const std::string& listen,
                                                                    const Security& security,
                                                                    const Experiment& experiment,
                                                                    Joins* joins,
                                                                    MembershipService::Say say) {
  std::unique_ptr<MembersServer> server(new MembersServer(experiment, joins));
  ConnectionLimits limits;
  limits.most = limits.most_of_host = Joins::kMost + kMostBesides;
  ASSIGN_OR_RETURN(server->listener_, Listener::Bind(listen, limits));
  Listener* const listener = server->listener_.get();
  server->service_ = std::make_unique<MembershipService>(
      joins, &server->experiment_, security,
      [listener](const std::string& peer) { listener->Trust(peer); },
      [listener](const std::string& peer) { listener->Refused(peer); }, say);
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(static_cast<int>(limits.most) + kOwnThreads);  // each call has one
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  // A server that is stopped, or cut off, is seen to be.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kKeepaliveMilliseconds / 2);
  listener->AddTo(&builder, security.ServerCredentials());
  builder.RegisterService(server->service_.get());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot serve on ", listen));
  }
  listener->Start([say](const std::string& why) { say("--listen: " + why); });
  return server;
}

MembersServer::~MembersServer() {
  if (server_ == nullptr) return;
  joins_.End();
  service_->Stop();
  listener_->Stop();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  server_->Wait();
}

}  // namespace thinwire
