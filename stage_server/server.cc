#include "stage_server/server.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "monitoring/metrics_server.h"
#include "prometheus/registry.h"
#include "stage_server/journal.h"
#include "stage_server/metrics.h"
#include "stage_server/open_backend.h"
#include "stage_server/peer_state_service.h"
#include "stage_server/service.h"
#include "tensor/cpu/device.h"
#include "transport/boundary_service.h"

namespace thinwire {
namespace {

SwapFileOptions SwapOf(const ServerOptions& options) {
  SwapFileOptions swap;
  swap.folder = options.swap_dir.value_or(options.allowed.state);
  swap.most_bytes = options.swap_bytes;
  return swap;
}

class StageServerImpl final : public StageServer {
 public:
  explicit StageServerImpl(const ServerOptions& options)
      : log_(options.log != nullptr ? *options.log : no_log_),
        journal_(&log_, errors_.get()),
        boundaries_(NewBoundaryService()),
        service_(
            GuardFor(Role::kCoordinator),
            [plugin = options.cuda_plugin, slots = options.device_slots,
             swap = SwapOf(options)](const BackendRequest& request) {
              absl::StatusOr<Backend> backend = OpenBackend(request, plugin);
              if (!backend.ok()) return backend;
              backend->device_slots = slots;
              backend->swap = swap;
              return backend;
            },
            boundaries_.get(), &journal_),
        peer_state_(
            GuardFor(Role::kStage), [this] { return service_.run(); }, &journal_) {}

  ~StageServerImpl() override { Shutdown(); }

  absl::Status Start(const ServerOptions& options) {
    ASSIGN_OR_RETURN(security_, Security::Load(options.security));
    if (!options.insecure) RETURN_IF_ERROR(security_.CheckListen(options.listen));
    service_.set_allowed_paths(options.allowed);
    service_.set_opening_patience(options.opening_patience);
    if (options.leases_last) service_.set_leases_last();
    service_.set_on_drain(options.on_drain);
    RETURN_IF_ERROR(StartMetrics(options.metrics_listen));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    ASSIGN_OR_RETURN(listener_, Listener::Bind(options.listen, options.connections));
    listener_->AddTo(&builder, security_.ServerCredentials());
    const auto on_call = [this](const std::string& peer, bool is_accepted) {
      is_accepted ? listener_->Trust(peer) : listener_->Refused(peer);
    };
    boundaries_->OnCall(on_call);
    peer_state_.set_on_call(on_call);
    service_.set_on_holder([this](const std::string& peer) { listener_->Trust(peer); });
    boundaries_->Secure(&security_, GuardFor(Role::kStage));
    boundaries_->Configure(options.listen, &builder);
    builder.RegisterService(&service_);
    builder.RegisterService(&peer_state_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot serve on ", options.listen));
    }
    address_ = listener_->address();
    listener_->Start(
        [this](const std::string& why) { log_.Write(spdlog::level::warn, "connection", {}, why); });
    is_serving_ = true;
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  const std::string& metrics_address() const override { return metrics_address_; }

  void AskToLeave() override { service_.AskToLeave(); }
  bool IsLeased() const override { return service_.IsLeased(); }
  JoinRequest Offer() override { return service_.Offer(); }
  void OfferHasEnded() override { service_.OfferHasEnded(); }

  void Shutdown() override {
    if (server_ == nullptr) return;
    // In this order: nobody new comes in; the run ends, which ends its calls; only then does gRPC
    // wait for calls to return.
    is_serving_ = false;
    listener_->Stop();
    service_.Stop();
    server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
    server_->Wait();
    server_.reset();
    metrics_server_.reset();
  }

 private:
  absl::Status StartMetrics(const std::string& listen) {
    if (listen.empty()) return absl::OkStatus();
    MetricsSources sources;
    sources.collectables = {errors_, std::make_shared<StageMetrics>(
                                         [this] { return service_.Snapshot(); },
                                         [this] { return service_.IsLeased(); }, CpuDevice())};
    sources.is_healthy = [this] { return is_serving_.load(); };
    ASSIGN_OR_RETURN(metrics_server_, MetricsServer::Start(listen, std::move(sources)));
    metrics_address_ = metrics_server_->address();
    service_.set_metrics_address(metrics_address_);
    return absl::OkStatus();
  }

  // Returns a guard that logs refusals: who tries to get in is worth knowing.
  GuardedService::Guard GuardFor(Role caller) {
    return [this, caller](const grpc::ServerContextBase& context) {
      const absl::Status status = security_.Check(context, caller);
      if (!status.ok()) journal_.CallerRefused(Printable(context.peer()), status);
      return status;
    };
  }

  Log no_log_;
  Log& log_;
  Security security_;
  const std::shared_ptr<prometheus::Registry> errors_ = std::make_shared<prometheus::Registry>();
  Journal journal_;
  std::unique_ptr<BoundaryService> boundaries_;
  StageService service_;
  PeerStateService peer_state_;
  std::atomic<bool> is_serving_{false};
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_, metrics_address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StageServer>> StartStageServer(const ServerOptions& options) {
  auto server = std::make_unique<StageServerImpl>(options);
  RETURN_IF_ERROR(server->Start(options));
  return server;
}

}  // namespace thinwire
