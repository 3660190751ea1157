#include "stage_server/server.h"

#include <atomic>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "monitoring/metrics_server.h"
#include "prometheus/registry.h"
#include "stage_server/grpc/boundary_service.h"
#include "stage_server/journal.h"
#include "stage_server/metrics.h"
#include "stage_server/open_backend.h"
#include "stage_server/service.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// "host:0" with the port that was found.
std::string WithPort(const std::string& address, int port) {
  if (absl::StartsWith(address, "unix:")) return address;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

class StageServerImpl final : public StageServer {
 public:
  explicit StageServerImpl(const ServerOptions& options)
      : journal_(options.log != nullptr ? options.log : &no_log_, errors_.get()),
        boundaries_(NewBoundaryService()),
        service_([plugin = options.cuda_plugin](
                     const BackendRequest& request) { return OpenBackend(request, plugin); },
                 boundaries_.get(), &journal_) {}

  ~StageServerImpl() override { Shutdown(); }

  absl::Status Start(const ServerOptions& options) {
    RETURN_IF_ERROR(StartMetrics(options.metrics_listen));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
    boundaries_->Configure(options.listen, &builder);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", options.listen,
                                                 ": is the address taken or malformed?"));
    }
    address_ = WithPort(options.listen, port);
    is_serving_ = true;
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  const std::string& metrics_address() const override { return metrics_address_; }

  void Shutdown() override {
    if (server_ == nullptr) return;
    is_serving_ = false;
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

  Log no_log_;
  const std::shared_ptr<prometheus::Registry> errors_ = std::make_shared<prometheus::Registry>();
  Journal journal_;
  std::unique_ptr<BoundaryService> boundaries_;
  StageService service_;
  std::atomic<bool> is_serving_{false};
  std::unique_ptr<MetricsServer> metrics_server_;
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
