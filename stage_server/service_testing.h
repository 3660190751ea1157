// Shared by the tests of control calls: a server of a small model, and each call as a coordinator
// makes it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "grpcpp/grpcpp.h"
#include "proto/stage.grpc.pb.h"
#include "stage_server/lease_testing.h"
#include "stage_server/log.h"
#include "stage_server/server.h"

namespace thinwire {

inline constexpr char kExperiment[] = R"(
name: service
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 20, limit: 40, test_limit: 20}
pipeline: {cuts: [], threads: 1}
optimizer: {lr: 0.1}
epochs: 1
device: cpu
)";

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.log = log_.get();
    options.opening_patience = absl::Seconds(1);
    server_ = *StartStageServer(options);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = Stage::NewStub(channel_);
  }
  void TearDown() override { stub_.reset(); }

  grpc::Status Acquire(const Lease& lease, AcquireResponse* response) {
    grpc::ClientContext context;
    AcquireRequest request;
    *request.mutable_lease() = lease;
    request.set_lease_seconds(60);
    request.set_holder("a test");
    return stub_->Acquire(&context, request, response);
  }
  grpc::Status Configure(const Lease& lease, uint32_t stage, uint32_t threads,
                         ConfigureResponse* response) {
    grpc::ClientContext context;
    ConfigureRequest request;
    *request.mutable_lease() = lease;
    *request.mutable_experiment() = *ParseExperiment(kExperiment, "test", overrides_);
    change_(request.mutable_experiment());
    request.set_link_secret(link_secret_);
    request.set_stage(stage);
    request.set_threads(threads);
    if (trace_) *request.mutable_trace() = *trace_;
    request.set_generates(generates_);
    *request.mutable_deal() = {deal_.begin(), deal_.end()};
    *request.mutable_stage_carriers() = {stage_carriers_.begin(), stage_carriers_.end()};
    return stub_->Configure(&context, request, response);
  }
  grpc::Status Train(const Lease& lease, uint64_t samples, int* steps, uint32_t epoch = 1) {
    grpc::ClientContext context;
    TrainRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(epoch);
    request.set_samples(samples);
    auto reader = stub_->Train(&context, request);
    for (StageEvent event; reader->Read(&event);) {
      *steps += event.has_step() ? 1 : 0;
      if (event.has_stage()) report_ = event.stage();
      traced_.MergeFrom(event.trace());
    }
    return reader->Finish();
  }
  uint64_t Advances(const Lease& lease) { return Renew(lease).advances(); }
  RenewResponse Renew(const Lease& lease) {
    grpc::ClientContext context;
    RenewRequest request;
    *request.mutable_lease() = lease;
    RenewResponse response;
    EXPECT_TRUE(stub_->Renew(&context, request, &response).ok());
    return response;
  }
  grpc::Status Evaluate(const Lease& lease, uint64_t samples) {
    grpc::ClientContext context;
    EvaluateRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(1);
    request.set_samples(samples);
    return EndOf(stub_->Evaluate(&context, request).get());
  }
  grpc::Status Gradients(const Lease& lease, uint64_t samples, uint64_t batch) {
    grpc::ClientContext context;
    GradientsRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(1);
    request.set_batch(batch);
    request.set_samples(samples);
    return EndOf(stub_->Gradients(&context, request).get());
  }
  grpc::Status Generate(const Lease& lease) {
    grpc::ClientContext context;
    GenerateRequest request;
    *request.mutable_lease() = lease;
    GenerateResponse response;
    return stub_->Generate(&context, request, &response);
  }
  static grpc::Status EndOf(grpc::ClientReader<StageEvent>* reader) {
    StageEvent event;
    while (reader->Read(&event)) continue;
    return reader->Finish();
  }
  grpc::Status Connect(const Lease& lease, const std::string& downstream) {
    grpc::ClientContext context;
    ConnectRequest request;
    *request.mutable_lease() = lease;
    if (!downstream.empty()) request.add_downstream(downstream);
    ConnectResponse response;
    return stub_->Connect(&context, request, &response);
  }
  grpc::Status Release(const Lease& lease) {
    grpc::ClientContext context;
    ReleaseRequest request;
    *request.mutable_lease() = lease;
    ReleaseResponse response;
    return stub_->Release(&context, request, &response);
  }
  // Returns the last report of one direction of the only cut, at its sender.
  BoundaryReport SenderOf(bool gradient) const {
    for (const BoundaryReport& end : report_.boundaries()) {
      if (end.sender() && end.gradient() == gradient) return end;
    }
    return {};
  }

  std::string Export(const Lease& lease) {
    grpc::ClientContext context;
    ExportParametersRequest request;
    *request.mutable_lease() = lease;
    auto reader = stub_->ExportParameters(&context, request);
    std::string file;
    for (FileChunk chunk; reader->Read(&chunk);) file += chunk.data();
    EXPECT_TRUE(reader->Finish().ok());
    return file;
  }
  std::unique_ptr<Log> log_ = std::make_unique<Log>();  // set before SetUp
  std::unique_ptr<StageServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stage::Stub> stub_;
  std::vector<std::string> overrides_;
  std::optional<TraceSteps> trace_;
  std::vector<uint32_t> deal_, stage_carriers_;
  bool generates_ = false;
  TraceReport traced_;  // sum of all reports of training
  std::string link_secret_ = "what a link shows";
  // An edit that no coordinator would make.
  std::function<void(Experiment*)> change_ = [](Experiment*) {};
  StageReport report_;  // the last one of training
  AcquireResponse acquired_;
  ConfigureResponse configured_;
};

}  // namespace thinwire
