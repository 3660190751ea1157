#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/build_info.h"
#include "grpcpp/grpcpp.h"
#include "proto/stage.grpc.pb.h"
#include "stage_server/lease_testing.h"
#include "stage_server/server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class DrainTest : public ::testing::Test {
 protected:
  grpc::Status Drain(const ServerOptions& options, DrainResponse* response) {
    server_ = *StartStageServer(options);
    stub_ =
        Stage::NewStub(grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext acquiring, draining;
    AcquireRequest request;
    *request.mutable_lease() = LeaseOf("one");
    request.set_lease_seconds(60);
    AcquireResponse acquired;
    EXPECT_EQ(server_->Offer().run(), "");
    EXPECT_EQ(server_->Offer().build().build_id(), BuildId());
    EXPECT_GT(server_->Offer().cores(), 0u);
    EXPECT_TRUE(stub_->Acquire(&acquiring, request, &acquired).ok());
    EXPECT_EQ(server_->Offer().run(), "one");
    return stub_->Drain(&draining, DrainRequest(), response);
  }

  std::unique_ptr<StageServer> server_;
  std::unique_ptr<Stage::Stub> stub_;
};

TEST_F(DrainTest, NeedsNoLeaseAndNamesTheRun) {
  std::atomic<int> asked{0};
  ServerOptions options;
  options.on_drain = [&asked] { ++asked; };
  DrainResponse response;
  EXPECT_TRUE(Drain(options, &response).ok());
  EXPECT_EQ(response.run(), "one");
  EXPECT_EQ(asked, 1);
}

TEST_F(DrainTest, IsRefusedByAServerThatEndsWithItsCoordinator) {
  DrainResponse response;
  const grpc::Status status = Drain({}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("was started by a coordinator"));
}

}  // namespace
}  // namespace thinwire
