// The control calls over a real socket, as a coordinator makes them in the right and wrong order.
#include "stage_server/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "config/experiment.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "stage_server/server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kExperiment[] = R"(
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
    options.metrics_listen.clear();
    server_ = *StartStageServer(options);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = Stage::NewStub(channel_);
  }
  void TearDown() override { stub_.reset(); }

  static Lease LeaseOf(const std::string& run, uint64_t generation = 1) {
    Lease lease;
    lease.set_run(run);
    lease.set_generation(generation);
    return lease;
  }

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
    *request.mutable_experiment() = *ParseExperiment(kExperiment, "test", {});
    request.set_stage(stage);
    request.set_threads(threads);
    return stub_->Configure(&context, request, response);
  }
  grpc::Status Train(const Lease& lease, uint64_t samples, int* steps) {
    grpc::ClientContext context;
    TrainRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(1);
    request.set_samples(samples);
    auto reader = stub_->Train(&context, request);
    for (StageEvent event; reader->Read(&event);) *steps += event.has_step() ? 1 : 0;
    return reader->Finish();
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
  // In pieces of 1000 bytes.
  grpc::Status Import(const Lease& lease, const std::string& file) {
    grpc::ClientContext context;
    ImportParametersResponse response;
    auto writer = stub_->ImportParameters(&context, &response);
    for (size_t at = 0; at < file.size(); at += 1000) {
      ImportParametersRequest request;
      if (at == 0) *request.mutable_lease() = lease;
      request.set_data(file.substr(at, 1000));
      if (!writer->Write(request)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  std::unique_ptr<StageServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stage::Stub> stub_;
  AcquireResponse acquired_;
  ConfigureResponse configured_;
};

TEST_F(ServiceTest, AcquireTellsWhatTheServerIs) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_GT(acquired_.cores(), 0u);
  EXPECT_FALSE(acquired_.build().build_id().empty());
  EXPECT_FALSE(acquired_.build().libraries().at("onednn").empty());
}

TEST_F(ServiceTest, AnotherRunIsRefusedAndToldWhoHoldsTheServer) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  const grpc::Status status = Acquire(LeaseOf("two"), &acquired_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("leased to run one generation 1 (a test at "));
}

TEST_F(ServiceTest, CallsOfALowerGenerationAreRefused) {
  ASSERT_TRUE(Acquire(LeaseOf("one", 1), &acquired_).ok());
  ASSERT_TRUE(Acquire(LeaseOf("one", 2), &acquired_).ok());
  const grpc::Status status = Configure(LeaseOf("one", 1), 0, 1, &configured_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("generation 2"));
}

TEST_F(ServiceTest, TrainingWantsAConfiguredStage) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  int steps = 0;
  const grpc::Status status = Train(LeaseOf("one"), 40, &steps);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("not configured"));
}

TEST_F(ServiceTest, ConfiguresAndTrainsAndNamesWrongNumbers) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_THAT(Configure(LeaseOf("one"), 1, 1, &configured_).error_message(),
              HasSubstr("stage 1, want 0 to 0"));
  EXPECT_THAT(Configure(LeaseOf("one"), 0, 0, &configured_).error_message(),
              HasSubstr("threads: 0"));
  const grpc::Status status = Configure(LeaseOf("one"), 0, 1, &configured_);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(configured_.train_samples(), 40u);
  EXPECT_GT(configured_.parameters(), 1000u);
  EXPECT_EQ(configured_.device().name(), "cpu");
  int steps = 0;
  EXPECT_THAT(Train(LeaseOf("one"), 41, &steps).error_message(),
              HasSubstr("reads 40 training samples, the run has 41"));
  EXPECT_TRUE(Train(LeaseOf("one"), 40, &steps).ok());
  EXPECT_EQ(steps, 2);
}

TEST_F(ServiceTest, WhatWasExportedIsImportedAndNothingElse) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const std::string initial = Export(lease);
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  const std::string trained = Export(lease);
  ASSERT_NE(trained, initial);
  EXPECT_EQ(Import(lease, initial.substr(0, initial.size() - 1)).error_code(),
            grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Export(lease), trained);
  const grpc::Status status = Import(lease, initial);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Export(lease), initial);
  EXPECT_EQ(Import(LeaseOf("two"), initial).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServiceTest, MoreThanTheStageHasIsNotGathered) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const grpc::Status status = Import(lease, std::string(size_t{20} << 20, 'x'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("parameters of more than"));
}

TEST_F(ServiceTest, ABatchThatTheEpochDoesNotHaveIsRefused) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  for (uint64_t batch : {0, 3}) {
    grpc::ClientContext context;
    GradientsRequest request;
    *request.mutable_lease() = lease;
    request.set_epoch(1);
    request.set_batch(batch);
    request.set_samples(40);
    auto reader = stub_->Gradients(&context, request);
    StageEvent event;
    while (reader->Read(&event)) continue;
    EXPECT_THAT(reader->Finish().error_message(), HasSubstr("batches 1 to 2"));
  }
}

TEST_F(ServiceTest, HealthServiceSaysServing) {
  // grpc.health.v1: an empty HealthCheckRequest asks for the server; status = 1 is SERVING.
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice answer;
  ASSERT_TRUE(response.DumpToSingleSlice(&answer).ok());
  EXPECT_EQ(std::string(answer.begin(), answer.end()), std::string("\x08\x01"));
}

}  // namespace
}  // namespace thinwire
