// Reads the state of a stage from another server that has it, and from peers that are no such
// server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "grpcpp/grpcpp.h"
#include "stage_server/service_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

grpc::Status Fetch(Stage::Stub* stub, const Lease& lease, const std::string& from,
                   uint64_t step = 2, bool in_background = false) {
  grpc::ClientContext context;
  FetchStateRequest request;
  *request.mutable_lease() = lease;
  request.set_from(from);
  request.set_step(step);
  request.set_in_background(in_background);
  FetchStateResponse response;
  return stub->FetchState(&context, request, &response);
}

grpc::Status Hold(Stage::Stub* stub, const Lease& lease, uint64_t step = 2, uint32_t readers = 1) {
  grpc::ClientContext context;
  HoldStateRequest request;
  *request.mutable_lease() = lease;
  request.set_step(step);
  request.set_readers(readers);
  HoldStateResponse response;
  return stub->HoldState(&context, request, &response);
}

// `server_` has trained, and holds its state for another one. `empty_` has the same stage and has
// not trained.
class PeerStateTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    overrides_ = {"pipeline.deadline_seconds=1", "optimizer.momentum=0.9"};
    int steps = 0;
    ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
    ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
    ASSERT_TRUE(Train(LeaseOf("one"), configured_.train_samples(), &steps).ok());
    having_ = std::move(stub_);
    ASSERT_TRUE(Hold(having_.get(), LeaseOf("one")).ok());
    empty_ = *StartStageServer(ServerOptions());
    stub_ =
        Stage::NewStub(grpc::CreateChannel(empty_->address(), grpc::InsecureChannelCredentials()));
    ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  }
  void TearDown() override {
    having_.reset();
    ServiceTest::TearDown();
  }
  void ConfigureEmpty() { ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok()); }

  std::unique_ptr<Stage::Stub> having_;
  std::unique_ptr<StageServer> empty_;
};

TEST_F(PeerStateTest, TheStateIsThatOfTheOtherServerMomentumIncluded) {
  ConfigureEmpty();
  ASSERT_TRUE(Fetch(stub_.get(), LeaseOf("one"), server_->address()).ok());
  const std::string fetched = Export(LeaseOf("one"));
  int steps = 0;
  ASSERT_TRUE(Train(LeaseOf("one"), configured_.train_samples(), &steps, /*epoch=*/2).ok());
  const std::string after = Export(LeaseOf("one"));
  std::swap(stub_, having_);
  EXPECT_EQ(Export(LeaseOf("one")), fetched);
  ASSERT_TRUE(Train(LeaseOf("one"), configured_.train_samples(), &steps, /*epoch=*/2).ok());
  EXPECT_EQ(Export(LeaseOf("one")), after);
}

TEST_F(PeerStateTest, WhoDoesNotShowTheLinksSecretIsToldNothing) {
  link_secret_ = "another run's secret";
  ConfigureEmpty();
  const grpc::Status refused = Fetch(stub_.get(), LeaseOf("one"), server_->address());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(),
              AllOf(HasSubstr(server_->address()), HasSubstr("does not show the secret")));
}

TEST_F(PeerStateTest, AServerOfAnotherGenerationIsRefusedAndNamed) {
  Lease second = LeaseOf("one");
  second.set_generation(second.generation() + 1);
  ASSERT_TRUE(Acquire(second, &acquired_).ok());
  ASSERT_TRUE(Configure(second, 0, 1, &configured_).ok());
  const grpc::Status refused = Fetch(stub_.get(), second, server_->address());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("asked for the state of stage 0, generation 2; this server has stage 0, "
                        "generation 1"));
}

TEST_F(PeerStateTest, ItIsReadAsOftenAsWasSaidAndWhileItsServerHasTrainedOn) {
  ConfigureEmpty();
  ASSERT_TRUE(Hold(having_.get(), LeaseOf("one"), /*step=*/2, /*readers=*/2).ok());
  std::swap(stub_, having_);
  const std::string held = Export(LeaseOf("one"));
  int steps = 0;
  ASSERT_TRUE(Train(LeaseOf("one"), configured_.train_samples(), &steps, /*epoch=*/2).ok());
  std::swap(stub_, having_);
  for (const bool in_background : {false, true}) {
    const grpc::Status fetched =
        Fetch(stub_.get(), LeaseOf("one"), server_->address(), /*step=*/2, in_background);
    EXPECT_TRUE(fetched.ok()) << fetched.error_message();
    EXPECT_EQ(Export(LeaseOf("one")), held);
  }
  const grpc::Status again = Fetch(stub_.get(), LeaseOf("one"), server_->address());
  EXPECT_EQ(again.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(again.error_message(), HasSubstr("after step 2; stage 0 here holds none"));
}

TEST_F(PeerStateTest, AServerThatHoldsAnotherStepIsRefusedEvenIfItIsTheServerItself) {
  ConfigureEmpty();
  grpc::Status refused = Fetch(stub_.get(), LeaseOf("one"), server_->address(), /*step=*/7);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("the state after step 7; stage 0 here holds that after step 2"));
  refused = Fetch(stub_.get(), LeaseOf("one"), empty_->address());
  EXPECT_THAT(refused.error_message(), HasSubstr("here holds none"));
}

TEST_F(PeerStateTest, WhoStandsAtAnotherStepOrHasNoReadersHoldsNothing) {
  grpc::Status refused = Hold(having_.get(), LeaseOf("one"), /*step=*/7);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("the state after step 7; stage 0 here stands after step 2"));
  refused = Hold(having_.get(), LeaseOf("one"), /*step=*/2, /*readers=*/0);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused.error_message(), "readers: 0, want 1 or more");
}

TEST_F(PeerStateTest, AServerThatIsNotThereIsNamed) {
  ConfigureEmpty();
  const grpc::Status gone = Fetch(stub_.get(), LeaseOf("one"), "127.0.0.1:1");
  EXPECT_EQ(gone.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(gone.error_message(), HasSubstr("127.0.0.1:1, which has the stage's state"));
}

// A peer that answers as a test wants.
class FakePeer final : public StagePeer::Service {
 public:
  using Writer = grpc::ServerWriter<StateChunk>;
  explicit FakePeer(std::function<grpc::Status(Writer*)> answer) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status ReadState(grpc::ServerContext*, const ReadStateRequest*, Writer* writer) override {
    return answer_(writer);
  }

 private:
  const std::function<grpc::Status(Writer*)> answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

StateChunk ModelPiece(const std::string& data) {
  StateChunk chunk;
  chunk.mutable_part()->set_tensors("model");
  chunk.set_data(data);
  return chunk;
}

TEST_F(PeerStateTest, WhatIsNoStateIsRefused) {
  ConfigureEmpty();
  FakePeer without_part([](FakePeer::Writer* writer) {
    StateChunk chunk;
    chunk.set_data("piece");
    writer->Write(chunk);
    return grpc::Status::OK;
  });
  grpc::Status status = Fetch(stub_.get(), LeaseOf("one"), without_part.address());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("a piece of no part"));
  FakePeer cut_off([](FakePeer::Writer* writer) {
    writer->Write(ModelPiece("half"));
    return grpc::Status::OK;
  });
  status = Fetch(stub_.get(), LeaseOf("one"), cut_off.address());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("model: safetensors"));
  FakePeer ends([](FakePeer::Writer* writer) {
    writer->Write(ModelPiece("half"));
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "its machine ends");
  });
  status = Fetch(stub_.get(), LeaseOf("one"), ends.address());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr(ends.address() + ": its machine ends"));
}

TEST_F(PeerStateTest, ReleaseEndsTheWaitForAPeerThatGoesSilent) {
  ConfigureEmpty();
  absl::Notification asked, over;
  FakePeer silent([&](FakePeer::Writer* writer) {
    writer->Write(ModelPiece("half"));
    asked.Notify();
    over.WaitForNotification();
    return grpc::Status::OK;
  });
  grpc::Status status;
  std::thread fetch([&] { status = Fetch(stub_.get(), LeaseOf("one"), silent.address()); });
  asked.WaitForNotification();
  EXPECT_TRUE(Release(LeaseOf("one")).ok());
  fetch.join();
  EXPECT_FALSE(status.ok());
  over.Notify();
}

}  // namespace
}  // namespace thinwire
