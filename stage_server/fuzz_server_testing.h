// The service that the fuzz target calls, in this process.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/server_interceptor.h"
#include "prometheus/registry.h"
#include "stage_server/control_calls_testing.h"
#include "stage_server/peer_state_service.h"
#include "stage_server/service.h"

namespace thinwire {

// Longer than any call may wait: what takes this long hangs.
constexpr absl::Duration kHangs = absl::Seconds(60);

// Counts the calls under way at the server.
class CountedCall final : public grpc::experimental::Interceptor {
 public:
  explicit CountedCall(std::atomic<int>* calls) : calls_(*calls) { ++calls_; }
  ~CountedCall() override { --calls_; }
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    methods->Proceed();
  }

 private:
  std::atomic<int>& calls_;
};

class CallCounter final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallCounter(std::atomic<int>* calls) : calls_(calls) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo*) override {
    return new CountedCall(calls_);
  }

 private:
  std::atomic<int>* const calls_;
};

// One service for all inputs; each input leaves it free.
class FuzzServer {
 public:
  FuzzServer() {
    AllowedPaths allowed;
    allowed.data = allowed.state = DataFolder();
    service_.set_allowed_paths(allowed);
    service_.set_opening_patience(kHangs);
    grpc::ServerBuilder builder;
    boundaries_->Configure("unix:fuzz", &builder);
    builder.RegisterService(&service_);
    builder.RegisterService(&peer_state_);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> counters;
    counters.push_back(std::make_unique<CallCounter>(&calls_));
    builder.experimental().SetInterceptorCreators(std::move(counters));
    server_ = builder.BuildAndStart();
    stub_ = std::make_unique<grpc::GenericStub>(server_->InProcessChannel({}));
  }

  grpc::GenericStub* stub() { return stub_.get(); }
  bool IsLeased() const { return service_.IsLeased(); }
  // Returns whether the server has no call under way before `patience` is over.
  bool IsQuietWithin(absl::Duration patience) const {
    const SteadyTime end = SteadyTime::Now() + patience;
    while (calls_ > 0 && SteadyTime::Now() < end) absl::SleepFor(absl::Microseconds(100));
    return calls_ == 0;
  }

 private:
  std::atomic<int> calls_{0};
  Log log_;
  prometheus::Registry registry_;
  Journal journal_{&log_, &registry_};
  std::unique_ptr<BoundaryService> boundaries_ = NewBoundaryService();
  StageService service_{[](const auto&) { return absl::OkStatus(); },
                        [](const BackendRequest& request) { return OpenBackend(request, ""); },
                        boundaries_.get(), &journal_};
  PeerStateService peer_state_{[](const auto&) { return absl::OkStatus(); },
                               [this] { return service_.run(); }, &journal_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

inline FuzzServer& TheServer() {
  static auto* const server = new FuzzServer;  // its threads outlive main
  return *server;
}

}  // namespace thinwire
