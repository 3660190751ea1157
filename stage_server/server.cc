#include "stage_server/server.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "prometheus/exposer.h"
#include "stage_server/grpc/boundary_service.h"
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
  explicit StageServerImpl(const std::string& cuda_plugin)
      : boundaries_(NewBoundaryService()),
        service_([cuda_plugin](
                     const BackendRequest& request) { return OpenBackend(request, cuda_plugin); },
                 boundaries_.get()),
        metrics_(
            std::make_shared<StageMetrics>([this] { return service_.Snapshot(); }, CpuDevice())) {}

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
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  const std::string& metrics_address() const override { return metrics_address_; }

  void Shutdown() override {
    if (server_ == nullptr) return;
    service_.Stop();
    server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
    server_->Wait();
    server_.reset();
    exposer_.reset();
  }

 private:
  absl::Status StartMetrics(const std::string& listen) {
    if (listen.empty()) return absl::OkStatus();
    try {
      exposer_ = std::make_unique<prometheus::Exposer>(listen, /*num_threads=*/2);
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat("cannot serve metrics on ", listen,
                                                 ": is the address taken or malformed? (",
                                                 error.what(), ")"));
    }
    exposer_->RegisterCollectable(metrics_);
    metrics_address_ = WithPort(listen, exposer_->GetListeningPorts().front());
    return absl::OkStatus();
  }

  std::unique_ptr<BoundaryService> boundaries_;
  StageService service_;
  std::shared_ptr<StageMetrics> metrics_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_, metrics_address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StageServer>> StartStageServer(const ServerOptions& options) {
  auto server = std::make_unique<StageServerImpl>(options.cuda_plugin);
  RETURN_IF_ERROR(server->Start(options));
  return server;
}

}  // namespace thinwire
